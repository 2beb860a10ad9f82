//! Guests whose monitor or run record cannot be reached or read.

use std::os::unix::fs::MetadataExt;

use crate::guest::{exec, launch_idle, pid, remove, status};
use crate::host;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(a_wiped_run_directory_loses_no_guest).bases(&["busybox"]),
    test!(a_wiped_run_directory_keeps_instance_numbers).bases(&["busybox"]),
    test!(a_guest_with_an_unreadable_run_record_can_be_killed).bases(&["busybox"]),
    test!(a_look_that_fails_ends_no_guest).bases(&["busybox"]),
];

fn a_wiped_run_directory_loses_no_guest(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let number = sandbox.instance().expect("the root is in use");
    host::wipe_run_directory(number);
    let found = sandbox.holm(&["status", "box", "--json"]).ok();
    assert_ne!(found.json()["state"], "stopped");
    assert!(found.stderr.contains("the monitor of guest box could not be reached;"), "{found}");
    assert_eq!(exec(sandbox, "box", "echo alive").ok().stdout, "alive\n");
    remove(sandbox, "box");
}

/// Another root must not get the number, and with it the guests.
fn a_wiped_run_directory_keeps_instance_numbers(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let number = sandbox.instance().expect("the root is in use");
    let kept = std::fs::metadata(sandbox.root().join("instance")).expect("a file").ino();
    let before = pid(&status(sandbox, "box"), "init_pid");
    host::wipe_run_directory(number);
    std::fs::remove_file(format!("/run/holm/instances/{number}")).expect("its link");

    let other = sandbox.root().join("other");
    let root = other.to_string_lossy();
    sandbox.holm(&["--root", &root, "create", "box", "--base", "none"]).refused(&["none"]);
    let taken = std::fs::read_to_string(other.join("instance")).expect("its number");
    assert_ne!(taken.trim(), number.to_string());
    sandbox.holm(&["--root", &root, "release"]).ok();

    assert_eq!(pid(&status(sandbox, "box"), "init_pid"), before);
    assert_eq!(exec(sandbox, "box", "echo alive").ok().stdout, "alive\n");
    assert_eq!(sandbox.instance(), Some(number));
    let now = std::fs::metadata(sandbox.root().join("instance")).expect("a file").ino();
    assert_eq!(now, kept, "an unchanged number is not written: there may be no room");
    remove(sandbox, "box");
}

/// As after a change of the run record's format.
fn a_guest_with_an_unreadable_run_record_can_be_killed(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "odd", &["--set", "restart=always"]);
    launch_idle(sandbox, "box", &[]);
    let group = host::cgroups()
        .into_iter()
        .find(|path| path.ends_with(format!("holm-{}/odd", sandbox.instance().unwrap_or(0))))
        .expect("the guest's cgroup");
    rustix::fs::setxattr(&group, "trusted.holm", b"{\"pid\":1}", rustix::fs::XattrFlags::empty())
        .expect("an attribute");

    let listed = sandbox.holm(&["ls"]).ok();
    assert!(listed.stdout.contains("odd   unknown"), "the others are listed too\n{listed}");
    assert!(listed.stdout.contains("\nbox  "), "{listed}");
    assert_eq!(status(sandbox, "odd")["state"], "unknown");
    for verb in ["start", "stop", "rm"] {
        sandbox.holm(&[verb, "odd"]).refused(&["odd cannot be read", "holm kill odd"]);
    }
    sandbox.holm(&["kill", "odd"]).ok();
    assert!(!group.exists());
    assert_eq!(status(sandbox, "odd")["state"], "stopped");
    sandbox.holm(&["start", "odd"]).ok();
    remove(sandbox, "odd");
    remove(sandbox, "box");
}

/// A host that has run out of memory or descriptors cannot tell whether init or the monitor runs.
/// That is an error, never their absence: a guest taken for dead would be ended.
fn a_look_that_fails_ends_no_guest(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "g", &[]);
    let before = pid(&status(sandbox, "g"), "init_pid");
    for errno in ["ENOMEM", "EMFILE"] {
        let inject = format!("inject=pidfd_open:error={errno}");
        for args in [&["ls"][..], &["status", "g"], &["set", "g", "protect=false"], &["start", "g"]]
        {
            let holm = sandbox.command();
            let mut strace = std::process::Command::new("strace");
            strace.args(["-q", "-o", "/dev/null", "-e", "trace=pidfd_open", "-e", &inject, "--"]);
            strace.arg(holm.get_program()).args(args);
            strace.envs(holm.get_envs().filter_map(|(name, value)| Some((name, value?))));
            let outcome = sandbox.run(&mut strace);
            let now = status(sandbox, "g");
            assert_ne!(now["state"], "stopped", "{errno}: {outcome}");
            assert_eq!(pid(&now, "init_pid"), before, "{errno}: {outcome}");
        }
    }
    sandbox.holm(&["rm", "--force", "g"]).ok();
}
