//! The processes that a guest's state names.

use std::os::fd::OwnedFd;

use super::{Pending, State};
use crate::process::{open, runs};

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
