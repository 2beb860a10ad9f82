//! A monitor killed with -9 between its guest's end and the last of what it does about it: the next command repairs.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal};

use crate::guest::{exec, status};
use crate::process::{Stopped, is_stopped, kill, kill_hard, process};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use crate::topics::accidents::killed::{
    EXECUTED, LAUNCHING, PREPARING, adopts, create, is_repaired,
};
use crate::traces::settled;

pub const TESTS: &[Test] = &[
    test!(before_it_notes_the_end).bases(&["busybox"]),
    test!(before_the_whole_program_has_begun).bases(&["busybox"]),
    test!(a_whole_program_that_is_gone).bases(&["busybox"]),
    test!(at_each_step_of_the_end).bases(&["busybox"]),
    test!(at_each_step_of_the_start_that_follows).bases(&["busybox"]),
    test!(a_repair_killed_at_each_step).bases(&["busybox"]),
];

/// The steps of `holm monitor-ended`, as long as it starts nothing.
const ENDING: &[&str] =
    &["ended-lock", "cleanup-killed", "cleanup-network", "cleanup-recorded", "cleanup-note"];

/// Waits until the monitor, whatever program it runs by now, stands still.
#[track_caller]
fn stands(sandbox: &Sandbox, monitor: Pid, what: &str) {
    let number = monitor.as_raw_nonzero().get().unsigned_abs();
    sandbox.wait_for(what, || is_stopped(number).then_some(()));
}

/// Starts the guest with the environment's word for its monitor: stop at `step`.
fn start(sandbox: &Sandbox, step: &str) {
    sandbox.run(sandbox.command_with_fault("HOLM_STOP_AT", step).args(["start", "box"])).ok();
}

#[track_caller]
fn is_stopped_again(sandbox: &Sandbox, what: &str) {
    sandbox.wait_for(what, || {
        sandbox.holm(&["ls"]).ok();
        (status(sandbox, "box")["status"] == "stopped").then_some(())
    });
}

/// Looks until the guest is stopped, and at what is noted of its end.
#[track_caller]
fn is_noted(sandbox: &Sandbox, words: &str, what: &str) {
    is_stopped_again(sandbox, what);
    let shown = status(sandbox, "box");
    assert_eq!(shown["last"]["ended"], words, "{what}: {shown}");
}

fn before_it_notes_the_end(sandbox: &mut Sandbox) {
    create(sandbox);
    let before = settled(sandbox);
    sandbox.holm(&["start", "box"]).ok();
    let (init, monitor) = (process(sandbox, "pid"), process(sandbox, "monitor"));
    kill(monitor, Signal::STOP);
    stands(sandbox, monitor, "the monitor stands still");
    kill_hard(sandbox, init);
    kill_hard(sandbox, monitor);
    is_noted(sandbox, "unknown", "nobody saw the end");
    is_repaired(sandbox, &before, "killed before it notes the end");
    sandbox.holm(&["rm", "box"]).ok();
}

/// Starts the guest by a copy of `holm`, which its monitor will execute; gives the copy's path.
fn start_by_copy(sandbox: &Sandbox) -> std::path::PathBuf {
    let copy = sandbox.root().join("holm");
    // Not written by this process: a command that another test starts meanwhile would hold it open.
    sandbox.run(Command::new("cp").arg(&sandbox.options.holm).arg(&copy)).ok();
    let mut command = Command::new(&copy);
    command.env("HOLM_ROOT", sandbox.root()).args(["start", "box"]);
    sandbox.run(command.stdin(Stdio::null())).ok();
    copy
}

/// Between the monitor's last word and the first of `holm monitor-ended`.
fn before_the_whole_program_has_begun(sandbox: &mut Sandbox) {
    create(sandbox);
    let before = settled(sandbox);
    let copy = start_by_copy(sandbox);
    let (init, monitor) = (process(sandbox, "pid"), process(sandbox, "monitor"));
    std::fs::remove_file(&copy).expect("the copy");
    let script = r#"printf '#!/bin/sh\nkill -STOP $$\n' >"$1" && chmod 755 "$1""#;
    sandbox.run(Command::new("sh").args(["-c", script, "sh"]).arg(&copy)).ok();
    kill(init, Signal::KILL);
    stands(sandbox, monitor, "the program in the place of holm stands still");
    kill(monitor, Signal::KILL);
    is_noted(sandbox, "killed 9", "the monitor noted the end");
    is_repaired(sandbox, &before, "killed before the whole program has begun");
    sandbox.holm(&["rm", "box"]).ok();
}

/// As in the midst of an upgrade: nobody goes on with the end.
fn a_whole_program_that_is_gone(sandbox: &mut Sandbox) {
    create(sandbox);
    let before = settled(sandbox);
    let copy = start_by_copy(sandbox);
    let init = process(sandbox, "pid");
    std::fs::remove_file(&copy).expect("the copy");
    kill(init, Signal::KILL);
    is_noted(sandbox, "killed 9", "the monitor noted the end");
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
            let (init, monitor) = (process(sandbox, "pid"), process(sandbox, "monitor"));
            kill(init, Signal::KILL);
            stands(sandbox, monitor, &what);
            let noted = status(sandbox, "box")["last"]["ended"] == "killed 9";
            kill(monitor, Signal::KILL);
            is_noted(sandbox, "killed 9", &what);
            // Whether another start was to follow is known as soon as the end is.
            let shown = status(sandbox, "box");
            let promised = shown["last"]["failure"].as_str().is_some_and(|text| {
                text.contains("to start it again is gone") && text.contains("holm start box")
            });
            let late = !["ended-lock", "cleanup-killed", "cleanup-network"].contains(step);
            assert_eq!(promised, policy == "always" && late && noted, "{what}: {shown}");
            // Each run has an end of its own: the words of this one say nothing about the next.
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
            process(sandbox, "monitor")
        } else {
            // The first start comes by the same step.
            let mut stopped = Stopped::new(sandbox, &["start", "box"], step);
            kill(stopped.at, Signal::CONT);
            let started = sandbox.wait_for("the first start", || stopped.try_wait());
            assert!(started.success(), "{what}");
            process(sandbox, "monitor")
        };
        exec(sandbox, "box", "reboot");
        stands(sandbox, first, &what);
        kill(first, Signal::KILL);
        if *step == EXECUTED {
            adopts(sandbox, step);
        } else {
            is_stopped_again(sandbox, &what);
            // From its first process on it is another run, which perhaps ends before anybody looks.
            let begun = LAUNCHING.contains(step) && !["mount-namespace", "clone"].contains(step);
            // Where the kernel tells its parent only (before Linux 6.15), nobody knows how it ended.
            let ends = &["unknown", "exited 127 adopted", "unknown adopted"][..];
            let words = if begun { ends } else { &["killed 1"] };
            let shown = status(sandbox, "box");
            assert!(words.iter().any(|word| shown["last"]["ended"] == *word), "{what}: {shown}");
        }
        is_repaired(sandbox, &before, &what);
    }
    sandbox.holm(&["rm", "box"]).ok();
}

/// Nobody watches the guest's end, and the command that cleans up is killed as well.
fn a_repair_killed_at_each_step(sandbox: &mut Sandbox) {
    create(sandbox);
    let before = settled(sandbox);
    for step in ENDING.iter().filter(|step| step.starts_with("cleanup")) {
        let what = format!("the repair killed after {step}");
        sandbox.holm(&["start", "box"]).ok();
        let (init, monitor) = (process(sandbox, "pid"), process(sandbox, "monitor"));
        kill_hard(sandbox, monitor);
        kill_hard(sandbox, init);
        let mut stopped = Stopped::new(sandbox, &["ls"], step);
        stopped.kill_command();
        is_noted(sandbox, "unknown", &what);
        is_repaired(sandbox, &before, &what);
    }
    sandbox.holm(&["rm", "box"]).ok();
}
