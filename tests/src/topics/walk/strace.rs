//! strace(1), which kills a command at one of its system calls or makes that call fail.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::command::Outcome;
use crate::process::{has_ended, process};
use crate::sandbox::Sandbox;

/// A system call of a command: its name, and which of those of this name it is, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    pub nth: usize,
}

/// What is done to a command at a call.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    Kill,
    Error(&'static str),
}

impl Call {
    /// The errors that the kernel may give for it on a host that has run out of something.
    pub fn errors(&self) -> &'static [&'static str] {
        match &*self.name {
            "open" | "openat" | "openat2" | "pipe2" | "socket" | "dup" | "inotify_init1"
            | "pidfd_open" | "fsopen" | "fsmount" | "open_tree" | "signalfd4" | "memfd_create" => {
                &["EMFILE", "ENOMEM"]
            }
            "write" | "pwrite64" | "mkdir" | "mkdirat" | "symlink" | "symlinkat" | "rename"
            | "renameat2" | "link" | "linkat" | "copy_file_range" | "fallocate" | "fsync"
            | "fsetxattr" | "ftruncate" => &["ENOSPC", "EIO"],
            "read" | "pread64" | "stat" | "fstat" | "lstat" | "newfstatat" | "statfs" | "statx"
            | "access" | "faccessat" | "faccessat2" | "getxattr" | "lgetxattr" | "fstatfs"
            | "readlink" | "readlinkat" | "getdents64" | "unlink" | "unlinkat" | "rmdir"
            | "fgetxattr" | "fchownat" | "fchmodat" => &["EIO", "ENOMEM"],
            "clone" | "clone3" | "fork" | "vfork" | "unshare" | "setns" | "mount"
            | "move_mount" | "mount_setattr" | "fsconfig" | "sendto" | "sendmsg" | "recvfrom"
            | "recvmsg" | "bind" | "connect" | "listen" | "flock" | "ioctl" | "prctl"
            | "execve" => &["ENOMEM"],
            // They cannot fail on a sane host, or the standard library panics if they do, which it
            // does for poll.
            _ => &[],
        }
    }
}

/// The process whose system calls are walked over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traced {
    /// The command.
    Holm,
    /// The holm-import that a command runs.
    Importer,
    /// The monitor of guest `box`, which becomes `holm monitor-ended`, after the end of init; there
    /// is no command then.
    Monitor,
}

/// Runs `holm ARGS...`; returns how it ended, and the system calls of the traced process.
pub fn record(sandbox: &Sandbox, traced: Traced, args: &[&str]) -> (Outcome, Vec<Call>) {
    let outcome = trace(sandbox, traced, &["-e", "trace=all"], args);
    (outcome, parse(&fs::read_to_string(log(sandbox)).expect("a log of strace")))
}

/// Runs `holm ARGS...` with a fault at a call; returns how it ended, and whether it came to that
/// call.
pub fn run_with(
    sandbox: &Sandbox,
    traced: Traced,
    call: &Call,
    fault: Fault,
    args: &[&str],
) -> (Outcome, bool) {
    let Call { name, nth } = call;
    let what = match fault {
        Fault::Kill => "signal=KILL".to_owned(),
        Fault::Error(errno) => format!("error={errno}"),
    };
    let (calls, inject) = (format!("trace={name}"), format!("inject={name}:{what}:when={nth}"));
    let outcome = trace(sandbox, traced, &["-e", &calls, "-e", &inject], args);
    let log = fs::read_to_string(log(sandbox)).expect("a log of strace");
    let hit = match fault {
        // strace is killed too, and may not get to `<unfinished ...>`.
        Fault::Kill => log.trim_end().ends_with('?') || log.contains("<unfinished ...>"),
        Fault::Error(_) => log.contains("(INJECTED)"),
    };
    (outcome, hit)
}

/// The calls of a traced process as strace writes them.
pub fn text(sandbox: &Sandbox, traced: Traced, args: &[&str]) -> String {
    trace(sandbox, traced, &["-s", "64"], args).ok();
    fs::read_to_string(log(sandbox)).expect("a log of strace")
}

fn log(sandbox: &Sandbox) -> PathBuf {
    sandbox.beside("strace")
}

/// Runs `holm ARGS...`, with strace and its `options` on the traced process.
fn trace(sandbox: &Sandbox, traced: Traced, options: &[&str], args: &[&str]) -> Outcome {
    let holm = sandbox.command();
    let mut command = match traced {
        Traced::Holm => {
            let mut command = strace(sandbox, options);
            command.arg("--").arg(holm.get_program());
            command
        }
        Traced::Importer => {
            let mut command = Command::new(holm.get_program());
            command.env("HOLM_IMPORT", traced_importer(sandbox, options));
            command
        }
        Traced::Monitor => return trace_monitor(sandbox, options),
    };
    for (name, value) in holm.get_envs() {
        if name != "HOLM_IMPORT" || traced == Traced::Holm {
            command.env(name, value.expect("a value"));
        }
    }
    sandbox.run(command.args(args))
}

fn strace(sandbox: &Sandbox, options: &[&str]) -> Command {
    let mut command = Command::new("strace");
    command.args(["-q", "-e", "signal=none", "-o"]).arg(log(sandbox)).args(options);
    command
}

/// A script in the place of holm-import that runs it with strace.
fn traced_importer(sandbox: &Sandbox, options: &[&str]) -> PathBuf {
    let path = sandbox.beside("importer");
    let command = strace(sandbox, options);
    let words = command.get_args().map(|word| word.to_str().expect("text"));
    let script = format!(
        "#!/bin/sh\nexec strace {} -- {} \"$@\"\n",
        words.collect::<Vec<_>>().join(" "),
        sandbox.options.import.display(),
    );
    fs::write(&path, script).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("ours");
    path
}

/// Attaches strace to the monitor, kills the guest's init, and waits for the monitor.
fn trace_monitor(sandbox: &Sandbox, options: &[&str]) -> Outcome {
    let (init, monitor) = (process(sandbox, "init_pid"), process(sandbox, "monitor_pid"));
    let pid = monitor.as_raw_nonzero().to_string();
    let mut command = strace(sandbox, options);
    let mut strace = command.args(["-p", &pid]).stderr(Stdio::null()).spawn().expect("strace");
    sandbox.wait_for("strace traces the monitor", || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        (!status.contains("TracerPid:\t0\n")).then_some(())
    });
    let init = init.as_raw_nonzero().to_string();
    let outcome = sandbox.run(Command::new("kill").args(["-KILL", &init]));
    sandbox.wait_for("the monitor ends", || {
        has_ended(monitor).then_some(strace.try_wait().expect("our child")?)
    });
    outcome
}

/// The calls in a log, in their order.
fn parse(log: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for line in log.lines() {
        let Some((name, _)) = line.split_once('(') else { continue };
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            let nth = calls.iter().filter(|call| call.name == name).count() + 1;
            calls.push(Call { name: name.to_owned(), nth });
        }
    }
    calls
}
