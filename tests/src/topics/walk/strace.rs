//! strace(1), which kills a command at one of its system calls or makes that call fail.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::command::Outcome;
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
            | "renameat2" | "fsync" | "fsetxattr" | "ftruncate" => &["ENOSPC", "EIO"],
            "read" | "pread64" | "stat" | "fstat" | "lstat" | "newfstatat" | "statfs"
            | "fstatfs" | "readlink" | "readlinkat" | "getdents64" | "unlink" | "unlinkat"
            | "rmdir" | "fgetxattr" | "fchownat" | "fchmodat" => &["EIO", "ENOMEM"],
            "clone" | "clone3" | "fork" | "vfork" | "unshare" | "setns" | "mount"
            | "move_mount" | "mount_setattr" | "fsconfig" | "sendto" | "sendmsg" | "recvfrom"
            | "recvmsg" | "bind" | "listen" | "flock" | "ioctl" | "prctl" | "execve" => &["ENOMEM"],
            // They cannot fail on a sane host, or the standard library panics if they do, which it
            // does for poll.
            _ => &[],
        }
    }
}

/// Runs `holm ARGS...`; returns how it ended, and the system calls of its own process.
pub fn record(sandbox: &Sandbox, args: &[&str]) -> (Outcome, Vec<Call>) {
    let log = log(sandbox);
    let mut command = strace(sandbox, &["-e", "trace=all"], args);
    let outcome = sandbox.run(&mut command);
    (outcome, parse(&fs::read_to_string(log).expect("a log of strace")))
}

/// Runs `holm ARGS...` with a fault at a call; returns how it ended, and whether it came to that
/// call.
pub fn run_with(sandbox: &Sandbox, call: &Call, fault: Fault, args: &[&str]) -> (Outcome, bool) {
    let Call { name, nth } = call;
    let what = match fault {
        Fault::Kill => "signal=KILL".to_owned(),
        Fault::Error(errno) => format!("error={errno}"),
    };
    let (trace, inject) = (format!("trace={name}"), format!("inject={name}:{what}:when={nth}"));
    let outcome = sandbox.run(&mut strace(sandbox, &["-e", &trace, "-e", &inject], args));
    let log = fs::read_to_string(log(sandbox)).expect("a log of strace");
    let hit = match fault {
        Fault::Kill => log.contains("<unfinished ...>"),
        Fault::Error(_) => log.contains("(INJECTED)"),
    };
    (outcome, hit)
}

fn log(sandbox: &Sandbox) -> PathBuf {
    sandbox.root().with_extension("strace")
}

fn strace(sandbox: &Sandbox, options: &[&str], args: &[&str]) -> Command {
    let holm = sandbox.command();
    let mut command = Command::new("strace");
    command.args(["-q", "-e", "signal=none", "-o"]).arg(log(sandbox)).args(options);
    command.arg("--").arg(holm.get_program()).args(args);
    command.envs(holm.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
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
