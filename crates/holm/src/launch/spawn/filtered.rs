use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use holm_sys::process::{CloneResult, clone, clone_sibling, exit_now};
use holm_sys::seccomp::Instruction;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

use crate::security;

/// Clones a child that has the filter from its first instruction on.
///
/// A helper loads the filter, clones the child as its sibling, sends the child's process id, or
/// the errno of what failed as a negative number, and ends.
pub fn clone_filtered(
    namespaces: u64,
    cgroup: BorrowedFd<'_>,
    filter: &[Instruction],
) -> io::Result<CloneResult> {
    let (from_helper, to_parent) = pipe_with(PipeFlags::CLOEXEC)?;
    let helper = match clone(0, None)? {
        CloneResult::Parent { pidfd, .. } => pidfd,
        CloneResult::Child(_) => {
            let filtered = security::install(filter).map_err(security::Error::into_kernel);
            let pid = match filtered.and_then(|()| clone_sibling(namespaces, cgroup)) {
                Ok(CloneResult::Parent { pid, .. }) => pid,
                Ok(child @ CloneResult::Child(_)) => return Ok(child),
                Err(error) => -error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()),
            };
            let _ = File::from(to_parent).write_all(&pid.to_ne_bytes());
            exit_now(0)
        }
    };
    drop(to_parent);
    // The helper is waited for first: the child closes its end of the pipe only when it executes
    // its program.
    waitid(WaitId::PidFd(helper.as_fd()), WaitIdOptions::EXITED)?;
    let mut bytes = [0; 4];
    File::from(from_helper).read_exact(&mut bytes)?;
    match Pid::from_raw(i32::from_ne_bytes(bytes)) {
        // Still this process's child, whether it runs or has ended: it was not waited for.
        Some(pid) if pid.as_raw_nonzero().get() > 0 => {
            let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
            Ok(CloneResult::Parent { pid: pid.as_raw_nonzero().get(), pidfd })
        }
        _ => Err(io::Error::from_raw_os_error(-i32::from_ne_bytes(bytes))),
    }
}
