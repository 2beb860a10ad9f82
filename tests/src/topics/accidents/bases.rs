//! A base that a running guest stands on, whatever its settings say by now.

use super::exec;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[test!(stays_under_a_guest_that_has_another_next)];

/// What the guest has not opened yet is opened in the base's objects only then.
fn stays_under_a_guest_that_has_another_next(sandbox: &mut Sandbox) {
    let text = "not opened before\n".repeat(1000);
    let source = super::system(sandbox, |dir| {
        std::fs::write(dir.join("etc/later"), &text).expect("a file");
    });
    sandbox.holm(&["base", "import", "old", &source]).ok();
    let source = super::system(sandbox, |_| {});
    sandbox.holm(&["base", "import", "new", &source]).ok();
    let launch = ["launch", "box", "--base", "old", "--net", "none", "--", "/bin/sleep", "1000"];
    sandbox.holm(&launch).ok();
    sandbox.holm(&["set", "box", "base=new"]).ok();
    let words = ["base old", "guest box, running", "restart it"];
    sandbox.holm(&["base", "rm", "old"]).refused(&words);
    assert_eq!(exec(sandbox, "box", "cat /etc/later").ok().stdout, text);
    sandbox.holm(&["restart", "box"]).ok();
    sandbox.holm(&["base", "rm", "old"]).ok();
    assert_eq!(exec(sandbox, "box", "test -e /etc/later").code(), 1, "that was the old base");
    sandbox.holm(&["rm", "--force", "box"]).ok();
}
