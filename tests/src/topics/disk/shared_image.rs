//! Guests of a base have one superblock of its image, as long as one of them runs.

use std::fs;

use crate::guest::{exec, launch_idle};
use crate::process::{Stopped, kill_hard, process};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(mounted_once_while_a_guest_runs).bases(&["busybox"]),
    test!(what_killed_processes_leave_is_unmounted).bases(&["busybox"]),
    test!(a_plain_root_needs_none).bases(&["busybox"]),
];

/// The mounts of images that the root of this test has in the host's mount namespace.
fn mounted(sandbox: &Sandbox) -> Vec<String> {
    let at = format!(" /run/holm/{}/images/", sandbox.instance().unwrap_or(0));
    let text = fs::read_to_string("/proc/self/mountinfo").expect("mountinfo");
    text.lines().filter(|line| line.contains(&at)).map(str::to_owned).collect()
}

/// A monitor unmounts the image when its guest has ended, a moment after the command that ended it.
#[track_caller]
fn nothing_is_mounted(sandbox: &Sandbox) {
    sandbox.wait_for("the image is unmounted", || mounted(sandbox).is_empty().then_some(()));
}

fn mounted_once_while_a_guest_runs(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "a", &[]);
    let first = mounted(sandbox);
    assert_eq!(first.len(), 1, "{first:?}");
    assert!(first[0].contains(" ro,nosuid,nodev,noexec"), "{first:?}");
    launch_idle(sandbox, "b", &[]);
    sandbox.holm(&["stop", "a"]).ok();
    assert_eq!(mounted(sandbox), first, "guest b runs");
    exec(sandbox, "b", "cat /bin/busybox >/dev/null").ok();
    sandbox.holm(&["stop", "b"]).ok();
    nothing_is_mounted(sandbox);
    // An ephemeral guest too.
    sandbox.holm(&["run", "--base", "busybox", "--", "true"]).ok();
    nothing_is_mounted(sandbox);
    sandbox.holm(&["start", "a", "b"]).ok();
    assert_eq!(mounted(sandbox).len(), 1);
    sandbox.holm(&["rm", "--force", "a", "b"]).ok();
    nothing_is_mounted(sandbox);
}

fn what_killed_processes_leave_is_unmounted(sandbox: &mut Sandbox) {
    // A monitor: its guest runs on, and the image stays for the new one.
    launch_idle(sandbox, "box", &[]);
    kill_hard(sandbox, process(sandbox, "monitor_pid"));
    sandbox.holm(&["exec", "box", "--", "true"]).ok();
    sandbox.holm(&["ls"]).ok();
    launch_idle(sandbox, "other", &[]);
    sandbox.holm(&["stop", "other"]).ok();
    assert_eq!(mounted(sandbox).len(), 1, "box has a new monitor");
    sandbox.holm(&["rm", "--force", "box", "other"]).ok();
    nothing_is_mounted(sandbox);
    // A command, when it has mounted the image.
    sandbox.holm(&["create", "box", "--base", "busybox"]).ok();
    let stopped = Stopped::new(sandbox, &["start", "box"], "image");
    assert_eq!(mounted(sandbox).len(), 1);
    sandbox.holm(&["gc"]).ok();
    assert_eq!(mounted(sandbox).len(), 1, "it is in use");
    stopped.kill_it();
    drop(stopped);
    // Init, which was cloned by then, ends when it notices that nobody will release it.
    sandbox.wait_for("a command unmounts the image", || {
        sandbox.holm(&["ls"]).ok();
        mounted(sandbox).is_empty().then_some(())
    });
    sandbox.holm(&["rm", "box"]).ok();
}

/// Not at its first start either, at which the base is copied.
fn a_plain_root_needs_none(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &["--set", "disk.kind=plain"]);
    assert_eq!(mounted(sandbox), Vec::<String>::new());
    sandbox.holm(&["restart", "box"]).ok();
    assert_eq!(mounted(sandbox), Vec::<String>::new());
    launch_idle(sandbox, "other", &[]);
    assert_eq!(mounted(sandbox).len(), 1);
    sandbox.holm(&["rm", "--force", "box", "other"]).ok();
    nothing_is_mounted(sandbox);
}
