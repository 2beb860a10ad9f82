//! What must not grow with the number of guests, by the system calls that it takes.

use super::strace::{Call, Traced, record, text};
use crate::guest::launch_idle;
use crate::host::free_port;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(ls_looks_once_at_each_guest).bases(&["busybox"]),
    test!(published_ports_need_no_list_of_interfaces).bases(&["busybox"]),
];

/// With a thousand guests each call more is a millisecond or two.
fn ls_looks_once_at_each_guest(sandbox: &mut Sandbox) {
    let calls = |sandbox: &Sandbox| {
        let (outcome, calls) = record(sandbox, Traced::Holm, &["ls"]);
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
        // Its settings, how it last ended, its two cgroups from the root, their state, and what it
        // has in use: three files on pure v2, with v1 the two places where those may be.
        (&["open", "openat"][..], 9),
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

/// With a thousand guests the list has a thousand interfaces.
fn published_ports_need_no_list_of_interfaces(sandbox: &mut Sandbox) {
    for name in ["first", "box"] {
        let publish = format!("{}:80", free_port());
        let args = ["create", name, "--base", "busybox", "-p", &publish, "--", "sleep", "100000"];
        sandbox.holm(&args).ok();
    }
    // Loads the ruleset, which is done once after each boot of the host.
    sandbox.holm(&["start", "first"]).ok();
    let start = text(sandbox, Traced::Holm, &["start", "box"]);
    let end = text(sandbox, Traced::Monitor, &[]);
    let launch = text(sandbox, Traced::Launcher, &["start", "box"]);
    let end_again = text(sandbox, Traced::Monitor, &[]);
    for log in [start, end, launch, end_again] {
        assert!(log.contains("NFT_MSG_"), "strace names no request of nftables\n{log}");
        let lists = |line: &&str| line.contains("RTM_GETLINK") && line.contains("NLM_F_DUMP");
        assert_eq!(log.lines().find(lists), None);
    }
    sandbox.holm(&["kill", "first"]).ok();
    sandbox.holm(&["rm", "--all"]).ok();
}
