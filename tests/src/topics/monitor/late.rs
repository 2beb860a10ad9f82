//! A monitor that sees its guest's end later than other commands do.

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::guest::{IDLE, exec, idle, status, stored_last_run};
use crate::process::{has_ended, kill, process};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use crate::topics::monitor::killed::end_noted_but_not_recorded;

pub const TESTS: &[Test] = &[
    test!(a_late_monitor_harms_no_later_run).bases(&["busybox"]),
    test!(a_late_monitor_still_follows_the_restart_policy).bases(&["busybox"]),
    test!(a_guest_that_is_not_restarted_waits_for_no_monitor).bases(&["busybox"]),
    test!(a_command_before_the_monitor_learns_how_init_ended).bases(&["busybox"]),
];

/// Stops (SIGSTOP) the monitor of a guest and kills the guest's init; returns the monitor.
fn end_unseen(sandbox: &Sandbox) -> Pid {
    let (init, monitor) = (process(sandbox, "init_pid"), process(sandbox, "monitor_pid"));
    kill(monitor, Signal::STOP);
    kill(init, Signal::KILL);
    sandbox.wait_for("init has ended", || has_ended(init).then_some(()));
    monitor
}

fn a_late_monitor_harms_no_later_run(sandbox: &mut Sandbox) {
    idle(sandbox, "launch", "box");
    let monitor = end_unseen(sandbox);
    sandbox.holm(&["start", "box"]).ok();
    let run = process(sandbox, "init_pid");
    kill(monitor, Signal::CONT);
    sandbox.wait_for("the late monitor is done", || has_ended(monitor).then_some(()));
    assert_eq!(process(sandbox, "init_pid"), run, "the second run goes on");
    exec(sandbox, "box", "true").ok();
    // The note about the first run is not taken for the second's.
    let last = stored_last_run(sandbox, "box").expect("the first run has ended");
    sandbox.holm(&["stop", "--timeout", "0s", "box"]).ok();
    let after = stored_last_run(sandbox, "box").expect("the second run has ended");
    assert_ne!((&last["run"], &last["at"]), (&after["run"], &after["at"]), "{last} {after}");
    sandbox.holm(&["rm", "box"]).ok();
}

fn a_late_monitor_still_follows_the_restart_policy(sandbox: &mut Sandbox) {
    let args = [&["launch", "box", "--set", "restart=always"][..], &IDLE].concat();
    sandbox.holm(&args).ok();
    let monitor = end_unseen(sandbox);
    let before = status(sandbox, "box");
    // This command cleans up the ended run.
    sandbox.holm(&["set", "box", "pids.limit=50"]).ok();
    assert_eq!(status(sandbox, "box")["state"], "restarting", "{before}");
    for args in [&["rename", "box", "other"][..], &["rm", "box"]] {
        sandbox.holm(args).refused(&["box", "is about to be started again", "holm stop box"]);
    }
    kill(monitor, Signal::CONT);
    sandbox
        .wait_for("it runs again", || exec(sandbox, "box", "true").status.success().then_some(()));
    assert_ne!(status(sandbox, "box")["init_pid"], before["init_pid"]);
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

/// Whoever has waited for the end may remove the guest, or start it.
fn a_guest_that_is_not_restarted_waits_for_no_monitor(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "box");
    for removed in [false, true] {
        let monitor = end_noted_but_not_recorded(sandbox);
        let ended = sandbox.holm(&["wait", "box", "--json"]).ok().json();
        assert_eq!(ended["last_run"]["outcome"], "killed", "{ended}");
        assert_eq!(status(sandbox, "box")["state"], "stopped");
        if removed {
            sandbox.holm(&["rm", "box"]).ok();
        }
        kill(monitor, Signal::KILL);
    }
    // With a policy that restarts it, that is left to the monitor.
    idle(sandbox, "create", "box");
    sandbox.holm(&["set", "box", "restart=on-failure"]).ok();
    let monitor = end_noted_but_not_recorded(sandbox);
    sandbox.holm(&["set", "box", "pids.limit=50"]).ok();
    assert_eq!(status(sandbox, "box")["state"], "restarting");
    kill(monitor, Signal::KILL);
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

/// How long a command waits for the note of a monitor that lives.
const END_NOTE: Duration = Duration::from_secs(2);

fn a_command_before_the_monitor_learns_how_init_ended(sandbox: &mut Sandbox) {
    idle(sandbox, "launch", "box");
    let monitor = end_unseen(sandbox);
    let begin = Instant::now();
    let mut command = sandbox.command();
    let waiting = command.args(["wait", "box", "--json"]).stdout(Stdio::piped()).spawn();
    sleep(Duration::from_millis(100));
    kill(monitor, Signal::CONT);
    let output = waiting.expect("holm wait").wait_with_output().expect("its output");
    let took = begin.elapsed();
    let waited: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // On a busy host the monitor may have come too late even so.
    let outcome = &waited["last_run"]["outcome"];
    assert!(outcome == "killed" || took >= END_NOTE, "{waited} after {took:?}");
    sandbox.holm(&["rm", "--force", "box"]).ok();
}
