//! Processes of the host: signals, and commands that stop at a step.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::guest::{pid, status};
use crate::sandbox::Sandbox;

/// A process of guest `box` that runs: `pid` (its init) or `monitor`.
pub fn process(sandbox: &Sandbox, whose: &str) -> Pid {
    process_of(&status(sandbox, "box"), whose)
}

/// The same, from the guest's `status`.
pub fn process_of(status: &Value, whose: &str) -> Pid {
    Pid::from_raw(pid(status, whose)).expect("a process id")
}

pub fn kill(process: Pid, signal: Signal) {
    kill_process(process, signal).expect("it is there");
}

/// Whether a process has ended, reaped or not.
pub fn has_ended(process: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    let stat = stat.unwrap_or_default();
    stat.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with('Z'))
}

/// Kills with -9, and waits until it has ended.
pub fn kill_hard(sandbox: &Sandbox, process: Pid) {
    kill(process, Signal::KILL);
    sandbox.wait_for("it has ended", || has_ended(process).then_some(()));
}

/// Kills a monitor while it waits for events: one that is killed between reading what its guest
/// wrote and writing it to the log takes that with it.
pub fn kill_waiting(sandbox: &Sandbox, monitor: Pid) {
    let waits = ["232 ", "281 "]; // epoll_wait and epoll_pwait on x86-64
    sandbox.wait_for("a monitor that waits", || {
        kill(monitor, Signal::STOP);
        sandbox.wait_for("it is stopped", || {
            is_stopped(monitor.as_raw_pid().unsigned_abs()).then_some(())
        });
        let call = std::fs::read_to_string(format!("/proc/{}/syscall", monitor.as_raw_nonzero()));
        let call = call.expect("of a process that is stopped");
        let waiting = waits.iter().any(|wait| call.starts_with(wait));
        kill(monitor, if waiting { Signal::KILL } else { Signal::CONT });
        waiting.then_some(())
    });
}

/// A command that has stopped itself at a step.
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

    /// Runs a command, which is to stop at `step`, until it has done so.
    #[track_caller]
    pub fn of(sandbox: &Sandbox, command: &mut Command, step: &str) -> Self {
        let shown = format!("{command:?}");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut command = command.spawn().expect("holm runs");
        let at = sandbox.wait_for("a process that stops at the step", || {
            if let Some(status) = command.try_wait().expect("our child") {
                panic!(
                    "{shown} ended with {status} and never came to step {step}; \
                     is it built with --features holm-cli/fault-injection?"
                );
            }
            let id = command.id();
            std::iter::once(id).chain(children(id)).find(|&pid| is_stopped(pid))
        });
        let at = Pid::from_raw(at.cast_signed()).expect("a process id");
        Self { command, at }
    }

    pub fn kill_it(&self) {
        kill_process(self.at, Signal::KILL).expect("it is stopped");
    }

    /// The one child of the process that stopped.
    #[track_caller]
    pub fn child(&self) -> Pid {
        let children = children(self.at.as_raw_nonzero().get().cast_unsigned());
        let &[child] = &children[..] else { panic!("not one child: {children:?}") };
        Pid::from_raw(child.cast_signed()).expect("a process id")
    }

    /// Continues it and waits for its end; returns its status and standard error.
    #[track_caller]
    pub fn resume(&mut self, sandbox: &Sandbox) -> (ExitStatus, String) {
        kill_process(self.at, Signal::CONT).expect("it is stopped");
        self.end(sandbox)
    }

    /// Waits for the end of the command; returns its status and standard error.
    #[track_caller]
    pub fn end(&mut self, sandbox: &Sandbox) -> (ExitStatus, String) {
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
        // After a failed test. A process id that was reused meanwhile is not in state T.
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

/// A program that ends with the test.
pub struct Daemon(Child);

impl Daemon {
    pub fn new(command: &mut Command) -> Self {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(quiet.spawn().unwrap_or_else(|error| panic!("{quiet:?}: {error}")))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
