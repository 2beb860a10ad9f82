//! The processes that a guest's state names.

use std::os::fd::OwnedFd;

use crate::process::{open, runs};
use crate::record::{PendingRestart, RunRecord};

impl RunRecord {
    /// The guest's init.
    pub(crate) fn init(&self) -> Option<OwnedFd> {
        open(self.init_pid, self.init_inode)
    }

    /// Its monitor, or the command that waits for it.
    pub(super) fn watcher(&self) -> Option<OwnedFd> {
        open(self.monitor_pid, self.monitor_inode)
    }

    pub(super) fn init_runs(&self) -> bool {
        runs(self.init())
    }

    pub(super) fn is_watched(&self) -> bool {
        runs(self.watcher())
    }
}

impl PendingRestart {
    /// Whether the monitor that is to make this start is still there.
    pub(super) fn stands(&self) -> bool {
        runs(open(self.monitor_pid, self.monitor_inode))
    }
}
