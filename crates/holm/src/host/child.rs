//! Namespaces and processes for probes to look at.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use holm_sys::process::{CloneResult, clone, exit_now, flags};
use rustix::process::{Pid, WaitOptions, waitpid};

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

/// Runs `look` while an idle child in the new `namespaces` exists; also returns the pidfd of the
/// child, which has ended by then.
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
