//! `holm start` and `holm run` killed with -9 at each step: the next command repairs.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{becomes, exec, pid, settled, status, traces};
use crate::sandbox::{Sandbox, skip};
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(start_killed_at_each_step).bases(&["busybox"]),
    test!(the_monitor_to_be_killed_at_each_step).bases(&["busybox"]),
    test!(start_killed_goes_on_in_the_monitor).bases(&["busybox"]),
    test!(run_killed_at_each_step).bases(&["busybox"]),
    test!(create_killed).bases(&["busybox"]),
    test!(a_release_build_injects_no_faults).bases(&["busybox"]),
];

/// The steps that `holm start` itself takes.
pub const PREPARING: &[&str] = &["base", "net-plan", "cgroup", "record"];
/// Those of the process that becomes the monitor.
pub const LAUNCHING: &[&str] = &[
    "mount-namespace",
    "clone",
    "id-maps",
    "net-attach",
    "root",
    "dev",
    "files",
    "wait-for-init",
    "net-inside",
    "proc",
    "sys",
    "binds",
    "pivot",
    "return",
    "socket",
    EXECUTED,
];
/// From here on init runs.
pub const EXECUTED: &str = "exec";

/// A command that stands still at a step.
pub struct Stopped {
    command: Child,
    /// The process that stopped: the command, or the child that becomes the monitor.
    pub at: Pid,
}

impl Stopped {
    /// Runs `holm ARGS...` until it has done `step`.
    #[track_caller]
    pub fn new(sandbox: &Sandbox, args: &[&str], step: &str) -> Self {
        let mut command = sandbox.command_with_fault("HOLM_STOP_AT", step);
        Self::of(sandbox, command.args(args), step)
    }

    /// The same for a command that the caller has told to stop at `step`.
    #[track_caller]
    pub fn of(sandbox: &Sandbox, command: &mut Command, step: &str) -> Self {
        let words = format!("{command:?}");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut command = command.spawn().expect("holm runs");
        let at = sandbox.wait_for("a process that stops at the step", || {
            if let Some(status) = command.try_wait().expect("our child") {
                panic!(
                    "{words} ended with {status} and never came to step {step}; \
                     is it built with --features holm-cli/fault-injection?"
                );
            }
            let id = command.id();
            std::iter::once(id).chain(children(id)).find(|&pid| is_stopped(pid))
        });
        let at = Pid::from_raw(at.cast_signed()).expect("a process id");
        Self { command, at }
    }

    fn kill_it(&self) {
        kill_process(self.at, Signal::KILL).expect("it stands still");
    }

    /// The one child of the process that stopped.
    #[track_caller]
    pub fn child(&self) -> Pid {
        let children = children(self.at.as_raw_nonzero().get().cast_unsigned());
        let &[child] = &children[..] else { panic!("not one child: {children:?}") };
        Pid::from_raw(child.cast_signed()).expect("a process id")
    }

    /// Lets it go on to its end: how it ended, and what it said.
    #[track_caller]
    pub fn go_on(&mut self, sandbox: &Sandbox) -> (ExitStatus, String) {
        kill_process(self.at, Signal::CONT).expect("it stands still");
        let status = sandbox.wait_for("the command ends", || self.try_wait());
        let mut said = String::new();
        let stderr = self.command.stderr.take().expect("piped");
        { stderr }.read_to_string(&mut said).expect("text");
        (status, said)
    }

    /// How the command ended, if it has.
    pub fn try_wait(&mut self) -> Option<ExitStatus> {
        self.command.try_wait().expect("our child")
    }

    pub fn kill_command(&mut self) {
        self.command.kill().expect("our child");
        self.command.wait().expect("our child");
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // What a failed test leaves; a number that was given anew meanwhile is not stopped.
        if is_stopped(self.at.as_raw_nonzero().get().cast_unsigned()) {
            let _ = kill_process(self.at, Signal::KILL);
        }
        let _ = self.command.kill();
        let _ = self.command.wait();
    }
}

fn children(id: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
    children.unwrap_or_default().split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

pub fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
}

pub fn create(sandbox: &Sandbox) {
    sandbox.holm(&["create", "box", "--base", "busybox", "--", "sleep", "100000"]).ok();
    // Once whole, so that the root has what it keeps.
    sandbox.holm(&["start", "box"]).ok();
    sandbox.holm(&["stop", "box"]).ok();
}

/// After `ls`, everything is as `before`, and the guest starts, answers and stops.
#[track_caller]
pub fn is_repaired(sandbox: &mut Sandbox, before: &[String], what: &str) {
    sandbox.wait_for(what, || {
        let listed = sandbox.holm(&["ls"]).ok();
        assert!(listed.stdout.contains("box"), "{what}\n{listed}");
        (status(sandbox, "box")["status"] == "stopped").then_some(())
    });
    // What was killed just now may have held the guest's lock until after the look before.
    becomes(sandbox, before, what, || {
        sandbox.holm(&["ls"]).ok();
    });
    is_whole(sandbox);
}

/// The guest starts, answers and stops.
#[track_caller]
fn is_whole(sandbox: &Sandbox) {
    sandbox.holm(&["start", "box"]).ok();
    assert_eq!(exec(sandbox, "box", "echo alive").ok().stdout, "alive\n");
    sandbox.holm(&["stop", "box"]).ok();
}

/// All of it is killed: `holm start`, and the process that was to become the monitor.
fn start_killed_at_each_step(sandbox: &mut Sandbox) {
    create(sandbox);
    let before = settled(sandbox);
    for step in [PREPARING, LAUNCHING].concat() {
        let mut stopped = Stopped::new(sandbox, &["start", "box"], step);
        stopped.kill_command();
        let _ = kill_process(stopped.at, Signal::KILL); // the same process before the fork
        if step == EXECUTED {
            // The guest lives, and gets a monitor.
            adopts(sandbox, step);
        }
        is_repaired(sandbox, &before, &format!("start killed after {step}"));
    }
    sandbox.holm(&["rm", "box"]).ok();
}

/// A guest that ran when its monitor-to-be was killed has one after the next command.
#[track_caller]
pub fn adopts(sandbox: &Sandbox, step: &str) {
    let first = status(sandbox, "box");
    assert_ne!(first["status"], "stopped", "{step}: {first}");
    sandbox.wait_for("a monitor of its own", || {
        let state = status(sandbox, "box");
        (state["unwatched"] == false && state["state"]["adopted"].is_u64()).then_some(())
    });
    assert_eq!(exec(sandbox, "box", "echo alive").ok().stdout, "alive\n");
    sandbox.holm(&["stop", "box"]).ok();
}

/// Only the child is killed: `holm start` says so, and has removed everything.
fn the_monitor_to_be_killed_at_each_step(sandbox: &mut Sandbox) {
    create(sandbox);
    let before = settled(sandbox);
    for step in LAUNCHING {
        let mut stopped = Stopped::new(sandbox, &["start", "box"], step);
        stopped.kill_it();
        let ended = sandbox.wait_for("holm start ends", || stopped.command.try_wait().ok()?);
        assert_eq!(ended.code(), Some(125), "start must not claim success: {step}");
        is_repaired(sandbox, &before, &format!("the monitor-to-be killed after {step}"));
    }
    sandbox.holm(&["rm", "box"]).ok();
}

/// Only `holm start` is killed: its child goes on, and the guest runs with a monitor.
fn start_killed_goes_on_in_the_monitor(sandbox: &mut Sandbox) {
    create(sandbox);
    let before = settled(sandbox);
    for step in LAUNCHING {
        let mut stopped = Stopped::new(sandbox, &["start", "box"], step);
        stopped.kill_command();
        kill_process(stopped.at, Signal::CONT).expect("it stands still");
        // `start` waits for the lock, which the child has until it is the monitor.
        sandbox.holm(&["start", "box"]).refused(&["guest box", "already running"]);
        let state = status(sandbox, "box");
        assert_eq!(pid(&state, "monitor"), stopped.at.as_raw_nonzero().get(), "{step}");
        assert_eq!(state["unwatched"], false, "{step}: {state}");
        assert_eq!(exec(sandbox, "box", "echo alive").ok().stdout, "alive\n");
        sandbox.holm(&["stop", "box"]).ok();
        is_repaired(sandbox, &before, &format!("start went on after {step}"));
    }
    sandbox.holm(&["rm", "box"]).ok();
}

fn run_killed_at_each_step(sandbox: &mut Sandbox) {
    sandbox.holm(&["run", "--base", "busybox", "--", "true"]).ok();
    let before = settled(sandbox);
    let before_launch = ["ids"].iter().chain(PREPARING);
    let after = ["command", "clean-up", "release"];
    let launching = LAUNCHING.iter().filter(|step| **step != "socket");
    for step in before_launch.chain(launching).chain(&after) {
        let name = format!("--name=at-{step}");
        let run = ["run", &name, "--base", "busybox", "--", "sleep", "1"];
        let mut stopped = Stopped::new(sandbox, &run, step);
        stopped.kill_command();
    }
    // An id that nobody owns may be in the making for ten seconds.
    becomes(sandbox, &before, "what the killed commands left", || {
        sandbox.holm(&["ls"]).ok();
    });
    sandbox.holm(&["run", "--base", "busybox", "--", "true"]).ok();
}

/// `holm create` killed at random: the guest is there whole, or not at all.
fn create_killed(sandbox: &mut Sandbox) {
    for round in 0..20_u64 {
        let mut command = sandbox.command();
        command.args(["create", "box", "--base", "busybox", "--net", "none"]);
        command.args(["--", "sleep", "100000"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("holm runs");
        std::thread::sleep(std::time::Duration::from_micros(round * 400));
        let _ = child.kill();
        child.wait().expect("our child");
        if sandbox.holm(&["ls", "-q"]).ok().stdout.is_empty() {
            super::idle(sandbox, "create", "box");
        }
        is_whole(sandbox);
        sandbox.holm(&["rm", "box"]).ok();
        let left = traces(sandbox);
        let left: Vec<_> =
            left.iter().filter(|t| t.starts_with("ids/") || t.starts_with("tmp/")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// What these tests do to Holm, nobody does to an installed one by its environment.
fn a_release_build_injects_no_faults(sandbox: &mut Sandbox) {
    let (release, faulty) = (&sandbox.options.holm, &sandbox.options.faulty);
    if release == faulty {
        skip("--holm is the build with faults");
    }
    let knows = |program: &Path, variable: &str| {
        let bytes = std::fs::read(program).expect("a program");
        bytes.windows(variable.len()).any(|window| window == variable.as_bytes())
    };
    for variable in ["HOLM_STOP_AT", "HOLM_PROBE_NO"] {
        assert!(knows(faulty, variable) && !knows(release, variable), "{variable}");
    }
    let mut command = sandbox.command();
    command.env("HOLM_STOP_AT", "base").env("HOLM_PROBE_NO", "overlay");
    sandbox.run(command.args(["run", "--base", "busybox", "--net", "none", "--", "true"])).ok();
}
