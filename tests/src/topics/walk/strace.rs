//! strace(1), which kills a command at one of its system calls or makes that call fail.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use super::attach::{trace_clone, trace_monitor};
use crate::command::Outcome;
use crate::sandbox::Sandbox;

/// A system call of a command: its name, and which of those of this name it is, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    pub nth: usize,
    is_sure: bool,
}

/// What is done to a command at a call.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    Kill,
    Error(&'static str),
}

impl Call {
    pub fn new(name: &str, nth: usize) -> Self {
        Self { name: name.to_owned(), nth, is_sure: false }
    }

    /// Whether it changes nothing that outlives the process, whatever its arguments are.
    pub fn changes_nothing(&self) -> bool {
        let own = ["brk", "mmap", "mprotect", "munmap", "rt_sigaction", "rt_sigprocmask"];
        let looks =
            ["clock_gettime", "fstat", "fstatfs", "newfstatat", "readlink", "stat", "statx"];
        own.contains(&&*self.name) || looks.contains(&&*self.name)
    }

    /// The errors that the kernel may give for it on a host that has run out of something.
    pub fn errors(&self) -> &'static [&'static str] {
        match &*self.name {
            _ if self.is_sure => &[],
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
            | "move_mount" | "fsconfig" | "sendto" | "sendmsg" | "recvfrom" | "recvmsg"
            | "bind" | "connect" | "listen" | "flock" | "ioctl" | "prctl" | "execve"
            | "execveat" | "pidfd_getfd" | "pidfd_send_signal" | "seccomp" | "chdir" | "fchdir"
            | "sethostname" | "setgroups" | "mount_setattr" | "umount2" | "pivot_root"
            | "setsockopt" | "close_range" => &["ENOMEM"],
            "epoll_create1" | "timerfd_create" | "eventfd2" => &["EMFILE", "ENOMEM"],
            "epoll_ctl" => &["ENOMEM", "ENOSPC"],
            "prlimit64" => &["EPERM"],
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
    /// The process that a command clones to launch guest `box`, and that becomes its monitor.
    Launcher,
    /// The init of guest `box`, from the clone on.
    Init,
    /// The process that `exec` clones into guest `box`, from the clone to exec.
    ExecChild,
    /// The monitor of guest `box`, which becomes `holm monitor-ended`, after the end of init; there
    /// is no command then.
    Monitor,
}

/// Runs `holm ARGS...`; returns how it ended, and the system calls of the traced process.
pub fn record(sandbox: &Sandbox, traced: Traced, args: &[&str]) -> (Outcome, Vec<Call>) {
    let outcome = trace(sandbox, traced, &["-e", "trace=all"], args);
    let log = fs::read_to_string(log(sandbox)).expect("a log of strace");
    (outcome, parse(traced, &log))
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
    let Call { name, nth, .. } = call;
    let what = match fault {
        Fault::Kill => "signal=KILL".to_owned(),
        Fault::Error(errno) => format!("error={errno}"),
    };
    let (calls, inject) = (format!("trace={name}"), format!("inject={name}:{what}:when={nth}"));
    let outcome = trace(sandbox, traced, &["-e", &calls, "-e", &inject], args);
    let log = fs::read_to_string(log(sandbox)).expect("a log of strace");
    let hit = match fault {
        // strace is killed too, and may not get to `<unfinished ...>`.
        Fault::Kill => {
            let ends = ["<unfinished ...>", "+++ killed by SIGKILL +++"];
            log.trim_end().ends_with('?') || ends.iter().any(|end| log.contains(end))
        }
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
            command.arg("-q").arg("--").arg(holm.get_program());
            command
        }
        Traced::Importer => {
            let mut command = Command::new(holm.get_program());
            command.env("HOLM_IMPORT", traced_importer(sandbox, options));
            command
        }
        Traced::Launcher => {
            return trace_clone(sandbox, "record", ".monitor", strace(sandbox, options), args);
        }
        Traced::Init => {
            return trace_clone(sandbox, "record", "box", strace(sandbox, options), args);
        }
        Traced::ExecChild => {
            return trace_clone(sandbox, "exec-running", "box", strace(sandbox, options), args);
        }
        Traced::Monitor => return trace_monitor(sandbox, strace(sandbox, options)),
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
    command.args(["-e", "signal=none", "-o"]).arg(log(sandbox)).args(options);
    command
}

/// A script in the place of holm-import that runs it with strace.
fn traced_importer(sandbox: &Sandbox, options: &[&str]) -> PathBuf {
    let path = sandbox.beside("importer");
    let command = strace(sandbox, options);
    let words = command.get_args().map(|word| word.to_str().expect("text"));
    let script = format!(
        "#!/bin/sh\nexec strace -q {} -- {} \"$@\"\n",
        words.collect::<Vec<_>>().join(" "),
        sandbox.options.import.display(),
    );
    fs::write(&path, script).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("ours");
    path
}

/// The calls in a log, in their order.
fn parse(traced: Traced, log: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for line in log.lines() {
        let Some((name, _)) = line.split_once('(') else { continue };
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            let nth = calls.iter().filter(|call| call.name == name).count() + 1;
            let is_sure = is_sure(traced, name, line);
            calls.push(Call { name: name.to_owned(), nth, is_sure });
        }
        // The calls of the guest's program are its own.
        if traced == Traced::ExecChild && name == "execveat" && line.ends_with("= 0") {
            break;
        }
    }
    calls
}

/// Whether a call cannot fail: a message through a pipe from or to the parent, which nobody could
/// be told of either, or a look at an own limit.
fn is_sure(traced: Traced, name: &str, line: &str) -> bool {
    match (traced, name) {
        (Traced::Init | Traced::ExecChild, "read" | "write") => line.contains("\", 6) "),
        (Traced::Launcher, "write") => line.contains(r#""\0", 1) "#),
        (_, "prlimit64") => line.contains(", NULL, "),
        _ => false,
    }
}
