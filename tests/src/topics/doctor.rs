//! `holm doctor`.

use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[test!(says_what_it_is)];

fn says_what_it_is(sandbox: &mut Sandbox) {
    let version = sandbox.holm(&["--version"]).ok();
    assert!(version.stdout.starts_with("holm "), "{version}");
}
