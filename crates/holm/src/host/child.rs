//! Runs a probe in a process of its own, so that what it changes ends with it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use holm_sys::process::{CloneResult, clone, exit_now, flags};
use rustix::process::{Pid, WaitOptions, waitpid};

/// Runs `probe` in a child in the new `namespaces` and, if given, in the cgroup; hands back what it returns.
pub(super) fn run(
    namespaces: u64,
    cgroup: Option<BorrowedFd<'_>>,
    probe: impl FnOnce() -> Result<String, String>,
) -> Result<String, String> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|error| format!("no pipe: {error}"))?;
    match clone(namespaces, cgroup).map_err(|error| error.to_string())? {
        CloneResult::Child(_) => {
            drop(reader);
            let answer = match probe() {
                Ok(detail) => format!("+{detail}"),
                Err(detail) => format!("-{detail}"),
            };
            let _ = File::from(writer).write_all(answer.as_bytes());
            exit_now(0)
        }
        CloneResult::Parent { pid, .. } => {
            drop(writer);
            let mut answer = String::new();
            let read = File::from(reader).read_to_string(&mut answer);
            reap(pid);
            read.map_err(|error| error.to_string())?;
            match answer.strip_prefix('+') {
                Some(detail) => Ok(detail.to_owned()),
                None => Err(answer.strip_prefix('-').unwrap_or("the probe died").to_owned()),
            }
        }
    }
}

/// A user namespace in which ids 0 to 65535 are the host's from `base` on.
pub(super) fn user_namespace(base: u32) -> Result<OwnedFd, String> {
    let map = format!("0 {base} 65536\n");
    while_alive(flags::NEWUSER, |pid, pidfd| {
        std::fs::write(format!("/proc/{pid}/uid_map"), &map)?;
        std::fs::write(format!("/proc/{pid}/gid_map"), &map)?;
        holm_sys::process::namespace(pidfd, holm_sys::process::Namespace::User)
    })
    .map(|(namespace, _)| namespace)
    .map_err(|error| format!("no user namespace: {error}"))
}

/// Looks at a child, in the new `namespaces`, that does nothing; hands back its descriptor as well, now of a dead one.
pub(super) fn while_alive<T>(
    namespaces: u64,
    look: impl FnOnce(i32, BorrowedFd<'_>) -> std::io::Result<T>,
) -> std::io::Result<(T, OwnedFd)> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    match clone(namespaces, None)? {
        CloneResult::Child(_) => {
            drop(writer);
            // Ends when the parent closes its end.
            let _ = File::from(reader).read(&mut [0]);
            exit_now(0)
        }
        CloneResult::Parent { pid, pidfd } => {
            let seen = look(pid, pidfd.as_fd());
            drop((reader, writer));
            reap(pid);
            seen.map(|seen| (seen, pidfd))
        }
    }
}

fn reap(pid: i32) {
    let _ = waitpid(Pid::from_raw(pid), WaitOptions::empty());
}
