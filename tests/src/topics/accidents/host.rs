//! Hosts that lack something, and people who are not root.

use std::process::Command;

use super::changes_nothing;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[test!(not_root).bases(&["busybox"])];

fn not_root(sandbox: &mut Sandbox) {
    changes_nothing(sandbox, |sandbox| {
        for words in [
            &["run", "--base", "busybox", "--", "true"][..],
            &["create", "box", "--base", "busybox"],
            &["base", "import", "two", "busybox"],
        ] {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
            command.arg(&sandbox.options.holm).args(words);
            command.env("HOLM_ROOT", sandbox.root()).env("HOLM_IMPORT", &sandbox.options.import);
            sandbox.run(&mut command).refused(&["root"]);
        }
    });
}
