//! Identifying recorded processes, and whether they run.
//!
//! A process id may belong to another process by now. So the inode of the process's pidfd is
//! recorded with it, which the kernel gives to no other process until the host reboots: the pidfd
//! is opened first, then its inode is compared, and everything else uses that pidfd.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::fstat;
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{Error, Result};

/// The caller's process id.
pub fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or_default()
}

/// The inode of a process's pidfd; 0 if there is no such process.
pub fn inode(pid: i32) -> Result<u64> {
    open_any(pid)?.map_or(Ok(0), |process| inode_of(pid, &process))
}

/// The process that had this id and this inode; `None` if it is gone. An inode of 0 was recorded by
/// a version of Holm that had no such field: then the id alone decides.
pub fn open(pid: i32, inode: u64) -> Result<Option<OwnedFd>> {
    let Some(process) = open_any(pid)? else { return Ok(None) };
    let same = inode == 0 || inode_of(pid, &process)? == inode;
    Ok(same.then_some(process))
}

/// The process that has this id now.
fn open_any(pid: i32) -> Result<Option<OwnedFd>> {
    let Some(id) = Pid::from_raw(pid) else { return Ok(None) };
    match pidfd_open(id, PidfdFlags::empty()) {
        Ok(process) => Ok(Some(process)),
        // The latter two: it is the id of a thread now (since 6.16 and before).
        Err(Errno::SRCH | Errno::NOENT | Errno::INVAL) => Ok(None),
        Err(errno) => Err(Error::step("look at process", &pid.to_string(), errno)),
    }
}

fn inode_of(pid: i32, process: &OwnedFd) -> Result<u64> {
    let found = fstat(process);
    let stat = found.map_err(|errno| Error::step("look at process", &pid.to_string(), errno))?;
    Ok(stat.st_ino)
}

/// Whether a process runs. A zombie does not: the host's init may be slow to reap it.
pub fn runs(process: Option<OwnedFd>) -> Result<bool> {
    process.map_or(Ok(false), |process| Ok(!ended_within(&process, Duration::ZERO)?))
}

/// Waits for a process to end; returns whether it did before the timeout.
pub fn ended_within(process: &OwnedFd, timeout: Duration) -> Result<bool> {
    readable_within(process, timeout).map_err(|errno| Error::step("wait for", "a process", errno))
}

/// Kills a process and waits until it has ended; returns whether it did within five seconds. One
/// that waits in the kernel for a disk does not.
pub fn kill_and_wait(process: &OwnedFd) -> Result<bool> {
    const KILLED: Duration = Duration::from_secs(5);
    let _ = pidfd_send_signal(process, Signal::KILL);
    ended_within(process, KILLED)
}

/// Waits until something can be read, or has hung up; returns whether that was before the timeout.
pub fn readable_within(fd: &OwnedFd, timeout: Duration) -> rustix::io::Result<bool> {
    polled_within(fd, PollFlags::IN, timeout)
}

/// Waits until the other end has hung up, whatever can be read before; returns whether that was
/// before the timeout.
pub fn hung_up_within(fd: &OwnedFd, timeout: Duration) -> rustix::io::Result<bool> {
    polled_within(fd, PollFlags::empty(), timeout)
}

fn polled_within(fd: &OwnedFd, events: PollFlags, timeout: Duration) -> rustix::io::Result<bool> {
    let timeout = Timespec::try_from(timeout).ok();
    let mut fds = [PollFd::new(fd, events)];
    retry_on_intr(|| poll(&mut fds, timeout.as_ref())).map(|count| count > 0)
}
