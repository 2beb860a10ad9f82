//! A monitor is killed at each step of what it does after its guest's end: the next command
//! reconciles.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal};

use crate::guest::{IDLE, ended, exec, status};
use crate::process::{Stopped, is_stopped, kill, kill_hard, process};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use crate::topics::accidents::killed::{
    EXECUTED, LAUNCHING, PREPARING, create, is_adopted, is_repaired,
};
use crate::traces::settled;

pub const TESTS: &[Test] = &[
    test!(before_it_records_the_end).bases(&["busybox"]),
    test!(before_monitor_ended_runs).bases(&["busybox"]),
    test!(the_holm_program_is_gone).bases(&["busybox"]),
    test!(at_each_step_of_the_end).bases(&["busybox"]),
    test!(at_each_step_of_the_start_that_follows).bases(&["busybox"]),
    test!(a_repair_killed_at_each_step).bases(&["busybox"]),
    test!(before_init_of_a_guest_that_restarts).bases(&["busybox"]),
];

/// The steps of `holm monitor-ended` when no restart follows.
const ENDING: &[&str] =
    &["ended-lock", "cleanup-killed", "cleanup-network", "cleanup-recorded", "cleanup-note"];

/// Waits until the monitor, whichever program it executes by now, is stopped.
#[track_caller]
fn wait_until_stopped(sandbox: &Sandbox, monitor: Pid, what: &str) {
    let number = monitor.as_raw_nonzero().get().unsigned_abs();
    sandbox.wait_for(what, || is_stopped(number).then_some(()));
}

/// Starts the guest with a monitor that will stop at `step`.
fn start(sandbox: &Sandbox, step: &str) {
    sandbox.run(sandbox.command_with_fault("HOLM_STOP_AT", step).args(["start", "box"])).ok();
}

#[track_caller]
fn is_stopped_again(sandbox: &Sandbox, what: &str) {
    sandbox.wait_for(what, || {
        sandbox.holm(&["ls"]).ok();
        (status(sandbox, "box")["state"] == "stopped").then_some(())
    });
}

/// Waits until the guest is stopped, then compares the recorded end.
#[track_caller]
fn is_noted(sandbox: &Sandbox, expected: &str, what: &str) {
    is_stopped_again(sandbox, what);
    let shown = status(sandbox, "box");
    assert_eq!(ended(&shown), expected, "{what}: {shown}");
}

fn before_it_records_the_end(sandbox: &mut Sandbox) {
    create(sandbox);
    let before = settled(sandbox);
    sandbox.holm(&["start", "box"]).ok();
    let (init, monitor) = (process(sandbox, "init_pid"), process(sandbox, "monitor_pid"));
    kill(monitor, Signal::STOP);
    wait_until_stopped(sandbox, monitor, "the monitor stands still");
    kill_hard(sandbox, init);
    kill_hard(sandbox, monitor);
    is_noted(sandbox, "unknown", "nobody saw the end");
    is_repaired(sandbox, &before, "killed before it notes the end");
    sandbox.holm(&["rm", "box"]).ok();
}

/// Starts the guest with a copy of `holm`, which its monitor will execute; returns the copy's path.
fn start_by_copy(sandbox: &Sandbox) -> std::path::PathBuf {
    let copy = sandbox.root().join("holm");
    // Not written by this process: a child that another test forks meanwhile would hold it open
    // (ETXTBSY).
    sandbox.run(Command::new("cp").arg(&sandbox.options.holm).arg(&copy)).ok();
    let mut command = Command::new(&copy);
    command.env("HOLM_ROOT", sandbox.root()).args(["start", "box"]);
    sandbox.run(command.stdin(Stdio::null())).ok();
    copy
}

/// Starts the guest and ends it. Its monitor has noted that, and stands still between the end of
/// the small monitor program and the start of `holm monitor-ended`.
pub fn end_noted_but_not_recorded(sandbox: &Sandbox) -> Pid {
    let copy = start_by_copy(sandbox);
    let (init, monitor) = (process(sandbox, "init_pid"), process(sandbox, "monitor_pid"));
    std::fs::remove_file(&copy).expect("the copy");
    let script = r#"printf '#!/bin/sh\nkill -STOP $$\n' >"$1" && chmod 755 "$1""#;
    sandbox.run(Command::new("sh").args(["-c", script, "sh"]).arg(&copy)).ok();
    kill(init, Signal::KILL);
    wait_until_stopped(sandbox, monitor, "the program in the place of holm stands still");
    monitor
}

fn before_monitor_ended_runs(sandbox: &mut Sandbox) {
    create(sandbox);
    let before = settled(sandbox);
    kill(end_noted_but_not_recorded(sandbox), Signal::KILL);
    is_noted(sandbox, "killed SIGKILL", "the monitor noted the end");
    is_repaired(sandbox, &before, "killed before the whole program has begun");
    sandbox.holm(&["rm", "box"]).ok();
}

/// As during an upgrade: there is no `holm monitor-ended` to execute.
fn the_holm_program_is_gone(sandbox: &mut Sandbox) {
    create(sandbox);
    let before = settled(sandbox);
    let copy = start_by_copy(sandbox);
    let init = process(sandbox, "init_pid");
    std::fs::remove_file(&copy).expect("the copy");
    kill(init, Signal::KILL);
    is_noted(sandbox, "killed SIGKILL", "the monitor noted the end");
    is_repaired(sandbox, &before, "no program to go on with");
    sandbox.holm(&["rm", "box"]).ok();
}

fn at_each_step_of_the_end(sandbox: &mut Sandbox) {
    create(sandbox);
    let before = settled(sandbox);
    for policy in ["no", "always"] {
        sandbox.holm(&["set", "box", &format!("restart={policy}")]).ok();
        for step in ENDING.iter().chain(&["cleanup-cgroup"]) {
            let what = format!("killed after {step}, restart={policy}");
            start(sandbox, step);
            let (init, monitor) = (process(sandbox, "init_pid"), process(sandbox, "monitor_pid"));
            kill(init, Signal::KILL);
            wait_until_stopped(sandbox, monitor, &what);
            let noted = ended(&status(sandbox, "box")) == "killed SIGKILL";
            kill(monitor, Signal::KILL);
            is_noted(sandbox, "killed SIGKILL", &what);
            // A pending restart is recorded together with the end.
            let shown = status(sandbox, "box");
            let promised = shown["last_run"]["restart_failure"].as_str().is_some_and(|text| {
                text.contains("to start it again is gone") && text.contains("holm start box")
            });
            let late = !["ended-lock", "cleanup-killed", "cleanup-network"].contains(step);
            assert_eq!(promised, policy == "always" && late && noted, "{what}: {shown}");
            // The recorded end belongs to this run only.
            is_repaired(sandbox, &before, &what);
        }
    }
    sandbox.holm(&["rm", "box"]).ok();
}

/// After a reboot the monitor starts the guest again itself.
fn at_each_step_of_the_start_that_follows(sandbox: &mut Sandbox) {
    create(sandbox);
    let before = settled(sandbox);
    for step in ["ended-wait"].iter().chain(PREPARING).chain(LAUNCHING) {
        let what = format!("killed after {step} of the start that follows");
        let first = if *step == "ended-wait" {
            start(sandbox, step);
            process(sandbox, "monitor_pid")
        } else {
            // The first start has the same step.
            let mut stopped = Stopped::new(sandbox, &["start", "box"], step);
            kill(stopped.at, Signal::CONT);
            let started = sandbox.wait_for("the first start", || stopped.try_wait());
            assert!(started.success(), "{what}");
            process(sandbox, "monitor_pid")
        };
        exec(sandbox, "box", "reboot");
        wait_until_stopped(sandbox, first, &what);
        kill(first, Signal::KILL);
        if *step == EXECUTED {
            is_adopted(sandbox, step);
        } else {
            is_stopped_again(sandbox, &what);
            // From its first process on it is another run, which may have ended before the next
            // look.
            let begun = LAUNCHING.contains(step) && !["mount-namespace", "clone"].contains(step);
            // Before Linux 6.15 only the parent learns how it ended.
            let ends = &["unknown", "exited 127"][..];
            let expected = if begun { ends } else { &["rebooted"] };
            let shown = status(sandbox, "box");
            assert!(expected.iter().any(|end| ended(&shown) == *end), "{what}: {shown}");
        }
        is_repaired(sandbox, &before, &what);
    }
    sandbox.holm(&["rm", "box"]).ok();
}

/// The monitor is dead when the guest ends, and the command that cleans up is killed.
fn a_repair_killed_at_each_step(sandbox: &mut Sandbox) {
    create(sandbox);
    let before = settled(sandbox);
    for step in ENDING.iter().filter(|step| step.starts_with("cleanup")) {
        let what = format!("the repair killed after {step}");
        sandbox.holm(&["start", "box"]).ok();
        let (init, monitor) = (process(sandbox, "init_pid"), process(sandbox, "monitor_pid"));
        kill_hard(sandbox, monitor);
        kill_hard(sandbox, init);
        let mut stopped = Stopped::new(sandbox, &["ls"], step);
        stopped.kill_command();
        is_noted(sandbox, "unknown", &what);
        is_repaired(sandbox, &before, &what);
    }
    sandbox.holm(&["rm", "box"]).ok();
}

/// Nobody is left to start the guest again, and `status` says so.
fn before_init_of_a_guest_that_restarts(sandbox: &mut Sandbox) {
    let args = [&["launch", "box", "--set", "restart=always"][..], &IDLE].concat();
    sandbox.holm(&args).ok();
    let (init, monitor) = (process(sandbox, "init_pid"), process(sandbox, "monitor_pid"));
    kill_hard(sandbox, monitor);
    kill_hard(sandbox, init);
    let shown = status(sandbox, "box");
    let why = shown["last_run"]["restart_failure"].as_str().unwrap_or_default();
    assert!(why.contains("its monitor was killed") && why.contains("holm start box"), "{shown}");
    sandbox.holm(&["rm", "box"]).ok();
}
