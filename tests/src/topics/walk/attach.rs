//! Attaching strace(1) to a process that runs, or that a command clones.
//!
//! With `strace -f` a fault would be made in each process that comes to the call. So strace is
//! attached to the one process, which is frozen from its clone on until it is.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};

use crate::command::{Outcome, Running};
use crate::host::cgroups;
use crate::process::{has_ended, is_stopped, kill, process};
use crate::sandbox::Sandbox;

/// Runs `holm ARGS...`, with `strace` on the process that it clones into the guest's cgroup, or
/// `.monitor`, after `step`.
pub fn trace_clone(
    sandbox: &Sandbox,
    step: &str,
    cgroup: &str,
    strace: Command,
    args: &[&str],
) -> Outcome {
    let mut command = sandbox.command_with_fault("HOLM_STOP_AT", step);
    let mut command = Running::new(command.args(args), b"");
    sandbox.wait_for("the command stops", || {
        assert!(!command.has_ended(), "{args:?} never came to step {step}");
        is_stopped(command.id()).then_some(())
    });
    let cgroup = Frozen::new(sandbox, cgroup);
    let before = cgroup.processes();
    kill(pid(command.id()), Signal::CONT);
    let clone = sandbox.wait_for("the command clones a process", || {
        let clone = cgroup.processes().into_iter().find(|process| !before.contains(process));
        assert!(clone.is_some() || !command.has_ended(), "{args:?} has cloned no process");
        clone
    });
    let mut strace = attach(strace, clone);
    drop(cgroup);
    let outcome = command.finish(sandbox.limit());
    // A fault may be made after the end of the command.
    sandbox.wait_for("the process ends or waits", || {
        (strace.try_wait().expect("our child").is_some() || is_idle(clone)).then_some(())
    });
    detach(strace);
    outcome
}

/// Attaches `strace` to the monitor, kills the guest's init, and waits for the monitor.
pub fn trace_monitor(sandbox: &Sandbox, strace: Command) -> Outcome {
    let (init, monitor) = (process(sandbox, "init_pid"), process(sandbox, "monitor_pid"));
    let mut strace = attach(strace, monitor);
    let init = init.as_raw_nonzero().to_string();
    let outcome = sandbox.run(Command::new("kill").args(["-KILL", &init]));
    sandbox.wait_for("the monitor ends", || {
        has_ended(monitor).then_some(strace.try_wait().expect("our child")?)
    });
    outcome
}

/// Returns when the next system call of the process is traced.
fn attach(mut strace: Command, process: Pid) -> Child {
    let pid = process.as_raw_nonzero().to_string();
    let mut strace = strace.args(["-p", &pid]).stderr(Stdio::piped()).spawn().expect("strace");
    let mut said = String::new();
    BufReader::new(strace.stderr.as_mut().expect("piped")).read_line(&mut said).expect("text");
    assert!(said.contains(" attached"), "strace -p {pid}: {said}");
    strace
}

/// The process runs on.
fn detach(mut strace: Child) {
    if strace.try_wait().expect("our child").is_none() {
        kill(pid(strace.id()), Signal::TERM);
        strace.wait().expect("our child");
    }
}

/// Whether a process sleeps, and goes on to.
fn is_idle(process: Pid) -> bool {
    let pid = process.as_raw_nonzero();
    (0..3).all(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'))
    })
}

fn pid(id: u32) -> Pid {
    Pid::from_raw(id.cast_signed()).expect("a process id")
}

/// A cgroup whose processes are frozen as long as this lives.
struct Frozen(PathBuf);

impl Frozen {
    /// The cgroup `name` of the sandbox's instance.
    fn new(sandbox: &Sandbox, name: &str) -> Self {
        let end = format!("holm-{}/{name}", sandbox.instance().expect("a command has run"));
        let file = |path: PathBuf| Some(path.join("cgroup.freeze")).filter(|file| file.exists());
        let path = cgroups().into_iter().filter(|path| path.ends_with(&end)).find_map(file);
        let frozen = Self(path.unwrap_or_else(|| panic!("no cgroup {end}")));
        fs::write(&frozen.0, "1").expect("it freezes");
        frozen
    }

    fn processes(&self) -> Vec<Pid> {
        let top = self.0.parent().expect("a cgroup");
        let below = cgroups().into_iter().filter(|path| path.starts_with(top));
        let lists = below.map(|path| fs::read_to_string(path.join("cgroup.procs")));
        let lists: Vec<String> = lists.flatten().collect();
        let ids = lists.iter().flat_map(|list| list.lines());
        ids.filter_map(|id| Pid::from_raw(id.parse().ok()?)).collect()
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, "0");
    }
}
