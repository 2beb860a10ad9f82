//! The processes that a guest's state names.
//!
//! A number alone may be another process's by now. So the state keeps with it the inode of the process's pidfd, which
//! the kernel gives to no other process until the host boots again: the descriptor is opened first and compared then,
//! and whatever is done goes through it.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::fstat;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{Pending, State};

/// The inode of a living process's pidfd; 0 if there is no such process.
pub(super) fn inode(pid: i32) -> u64 {
    let process = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    process.and_then(|process| fstat(&process).ok()).map_or(0, |stat| stat.st_ino)
}

/// The process that had this number and this inode, if it is still there. An inode of 0 was noted by a Holm that knew
/// no better: then the number has to do.
fn open(pid: i32, inode: u64) -> Option<OwnedFd> {
    let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    let same = inode == 0 || fstat(&process).ok()?.st_ino == inode;
    same.then_some(process)
}

/// Whether a process runs. One that has ended and was not reaped yet does not: the host's init may be slow.
fn runs(process: Option<OwnedFd>) -> bool {
    process.is_some_and(|process| {
        let mut fds = [PollFd::new(&process, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())) == Ok(0)
    })
}

impl State {
    /// The guest's init.
    pub(crate) fn init(&self) -> Option<OwnedFd> {
        open(self.pid, self.pid_inode)
    }

    /// Its monitor, or the command that waits for it.
    pub(super) fn watcher(&self) -> Option<OwnedFd> {
        open(self.monitor, self.monitor_inode)
    }

    pub(super) fn init_runs(&self) -> bool {
        runs(self.init())
    }

    pub(super) fn is_watched(&self) -> bool {
        runs(self.watcher())
    }
}

impl Pending {
    /// Whether the monitor that is to make this start is still there.
    pub(super) fn stands(&self) -> bool {
        runs(open(self.by, self.by_inode))
    }
}
