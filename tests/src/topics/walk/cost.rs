//! How many system calls a look at all guests takes.

use super::strace::{Call, record};
use crate::guest::launch_idle;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[test!(ls_looks_once_at_each_guest).bases(&["busybox"])];

/// With a thousand guests each call more is a millisecond or two.
fn ls_looks_once_at_each_guest(sandbox: &mut Sandbox) {
    let calls = |sandbox: &Sandbox| {
        let (outcome, calls) = record(sandbox, &["ls"]);
        outcome.ok();
        calls
    };
    launch_idle(sandbox, "first", &[]);
    let few = calls(sandbox);
    for name in ["a", "b", "c", "d"] {
        launch_idle(sandbox, name, &[]);
    }
    let many = calls(sandbox);
    let count = |calls: &[Call], names: &[&str]| {
        calls.iter().filter(|call| names.contains(&&*call.name)).count()
    };
    for (names, most) in [
        // Fifteen on pure v2, which has all files of a cgroup in one place.
        (&["open", "openat"][..], 15),
        (&["pidfd_open"], 1),
        // The run record, readiness, init's words.
        (&["fgetxattr"], 3),
        // Its directory, its monitor's socket.
        (&["stat", "newfstatat", "statx"], 2),
    ] {
        let each = (count(&many, names) - count(&few, names)).div_ceil(4);
        assert!(each <= most, "{each} {names:?} for each guest");
    }
    sandbox.holm(&["kill", "--all"]).ok();
    sandbox.holm(&["rm", "--all"]).ok();
}
