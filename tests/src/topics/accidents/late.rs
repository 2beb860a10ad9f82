//! Who comes late: a monitor that other commands were faster than, a stop that was killed, notes older than what is.

use std::os::unix::fs::symlink;

use rustix::process::{Pid, Signal};

use super::killed_end::{has_ended, kill, process};
use super::{IDLE, exec, idle, status};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(a_late_monitor_harms_no_later_run).bases(&["busybox"]),
    test!(a_late_monitor_still_follows_the_restart_policy).bases(&["busybox"]),
    test!(a_stop_that_was_killed_lapses).bases(&["busybox"]),
    test!(ids_noted_by_a_guest_but_not_its_own).bases(&["busybox"]),
    test!(a_run_that_is_kept_hears_the_verbs).bases(&["busybox"]),
];

/// Stops the monitor of a guest and kills the guest's init: the end that the monitor has yet to see. Gives the monitor.
fn end_unseen(sandbox: &Sandbox) -> Pid {
    let (init, monitor) = (process(sandbox, "pid"), process(sandbox, "monitor"));
    kill(monitor, Signal::STOP);
    kill(init, Signal::KILL);
    sandbox.wait_for("init has ended", || has_ended(init).then_some(()));
    monitor
}

fn a_late_monitor_harms_no_later_run(sandbox: &mut Sandbox) {
    idle(sandbox, "launch", "box");
    let monitor = end_unseen(sandbox);
    sandbox.holm(&["start", "box"]).ok();
    let run = process(sandbox, "pid");
    kill(monitor, Signal::CONT);
    sandbox.wait_for("the late monitor is done", || has_ended(monitor).then_some(()));
    assert_eq!(process(sandbox, "pid"), run, "the second run goes on");
    exec(sandbox, "box", "true").ok();
    // Nor are the words about the first run put down to the second.
    let last = status(sandbox, "box")["last"].clone();
    sandbox.holm(&["stop", "--timeout", "0s", "box"]).ok();
    let after = status(sandbox, "box")["last"].clone();
    assert_ne!((&last["run"], &last["at"]), (&after["run"], &after["at"]), "{last} {after}");
    sandbox.holm(&["rm", "box"]).ok();
}

fn a_late_monitor_still_follows_the_restart_policy(sandbox: &mut Sandbox) {
    let words = [&["launch", "box", "--set", "restart=always"][..], &IDLE].concat();
    sandbox.holm(&words).ok();
    let monitor = end_unseen(sandbox);
    let before = status(sandbox, "box");
    // This one takes away what the run has left.
    sandbox.holm(&["set", "box", "pids.limit=50"]).ok();
    assert_eq!(status(sandbox, "box")["status"], "restarting", "{before}");
    for words in [&["rename", "box", "other"][..], &["rm", "box"]] {
        sandbox.holm(words).refused(&["box", "is about to be started again", "holm stop box"]);
    }
    kill(monitor, Signal::CONT);
    sandbox
        .wait_for("it runs again", || exec(sandbox, "box", "true").status.success().then_some(()));
    assert_ne!(status(sandbox, "box")["state"]["pid"], before["state"]["pid"]);
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

fn a_stop_that_was_killed_lapses(sandbox: &mut Sandbox) {
    let script = "trap '' TERM; echo deaf; while :; do sleep 1; done";
    let words = ["launch", "box", "--base", "busybox", "--net", "none", "--", "sh", "-c", script];
    sandbox.holm(&words).ok();
    sandbox.wait_for("it hears no signal", || {
        sandbox.holm(&["logs", "box"]).stdout.contains("deaf").then_some(())
    });
    let mut command = sandbox.command();
    // Longer than it takes to see that it waits.
    let time = format!("{}s", 8 * sandbox.options.patience());
    let mut stop = command.args(["stop", "box", "--timeout", &time]).spawn().expect("holm starts");
    sandbox.wait_for("it is being stopped", || {
        (status(sandbox, "box")["status"] == "stopping").then_some(())
    });
    stop.kill().expect("it runs");
    stop.wait().expect("it ends");
    sandbox.wait_for("nobody stops it any more", || {
        (status(sandbox, "box")["status"] != "stopping").then_some(())
    });
    exec(sandbox, "box", "true").ok();
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

/// As a `rename` or a change of `security.nesting` leaves it that was killed halfway.
fn ids_noted_by_a_guest_but_not_its_own(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "box");
    idle(sandbox, "create", "other");
    let root = sandbox.root().to_owned();
    let note = |name: &str| root.join("guests").join(name).join("id");
    let noted = std::fs::read_to_string(note("other")).expect("its ids");
    std::fs::write(note("box"), &noted).expect("the note is written");
    sandbox.holm(&["start", "box", "other"]).ok();
    let base = |name| status(sandbox, name)["state"]["ids"]["base"].as_u64().expect("its ids");
    assert_ne!(base("box"), base("other"));
    sandbox.holm(&["kill", "box"]).ok();
    // A note that names another's is no right to give them back.
    std::fs::write(note("box"), &noted).expect("the note is written");
    sandbox.holm(&["rm", "box"]).ok();
    let context = noted.split(' ').next().expect("a context id").to_owned();
    let link = root.join("ids").join(&context);
    assert!(link.is_symlink(), "those of the other stay taken");
    // What a removal that was killed has left in tmp, with the same note.
    let grave = root.join("tmp/rm-gone-999999999");
    std::fs::create_dir_all(&grave).expect("a folder");
    std::fs::write(grave.join("id"), &noted).expect("its note");
    idle(sandbox, "create", "box");
    assert!(!grave.exists() && link.is_symlink(), "the folder goes, the ids stay");
    // A link whose guest was renamed by a command that was killed in between.
    std::fs::remove_file(&link).and_then(|()| symlink("../guests/before", &link)).expect("a link");
    sandbox.holm(&["rm", "--force", "other"]).ok();
    assert!(link.is_symlink());
    sandbox.holm(&["rm", "box"]).ok();
}

fn a_run_that_is_kept_hears_the_verbs(sandbox: &mut Sandbox) {
    let words = ["run", "--name", "box", "--keep"];
    let mut command = sandbox.command();
    let mut run = command.args([&words[..], &IDLE].concat()).spawn().expect("holm starts");
    sandbox.wait_for("it runs", || {
        sandbox.holm(&["exec", "box", "true"]).status.success().then_some(())
    });
    sandbox.holm(&["set", "box", "pids.limit=60"]).ok();
    sandbox.holm(&["freeze", "box"]).ok();
    sandbox.holm(&["thaw", "box"]).ok();
    sandbox.holm(&["stop", "box"]).ok();
    assert_eq!(run.wait().expect("it ends").code(), Some(128 + 15));
    let after = status(sandbox, "box");
    assert_eq!(
        (&after["status"], &after["last"]["ended"]),
        (&"stopped".into(), &"exited 143".into())
    );
    sandbox.holm(&["start", "box"]).ok();
    sandbox.holm(&["rm", "--force", "box"]).ok();
}
