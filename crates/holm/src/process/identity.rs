//! Identifying recorded processes, and whether they run.
//!
//! A process id may belong to another process by now. So the inode of the process's pidfd is
//! recorded with it, which the kernel gives to no other process until the host reboots: the pidfd
//! is opened first, then its inode is compared, and everything else uses that pidfd.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::fstat;
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{Error, Result};

/// The caller's process id.
pub fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or_default()
}

/// The inode of a process's pidfd; 0 if there is no such process.
pub fn inode(pid: i32) -> u64 {
    let process = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    process.and_then(|process| fstat(&process).ok()).map_or(0, |stat| stat.st_ino)
}

/// The process that had this id and this inode, if it is still there. An inode of 0 was recorded by
/// a version of Holm that had no such field: then the id alone decides.
pub fn open(pid: i32, inode: u64) -> Option<OwnedFd> {
    let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    let same = inode == 0 || fstat(&process).ok()?.st_ino == inode;
    same.then_some(process)
}

/// Whether a process runs. A zombie does not: the host's init may be slow to reap it.
pub fn runs(process: Option<OwnedFd>) -> bool {
    process.is_some_and(|process| {
        let mut fds = [PollFd::new(&process, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())) == Ok(0)
    })
}

/// Waits for a process to end; returns whether it did before the timeout.
pub fn ended_within(process: &OwnedFd, timeout: Duration) -> Result<bool> {
    let timeout = Timespec::try_from(timeout).ok();
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    retry_on_intr(|| poll(&mut fds, timeout.as_ref()))
        .map(|count| count > 0)
        .map_err(|errno| Error::step("wait for", "a process", errno))
}
