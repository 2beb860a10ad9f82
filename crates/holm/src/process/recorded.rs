//! The processes that a run record names.

use std::os::fd::OwnedFd;

use super::Result;
use super::identity::{open, runs};
use crate::record::{PendingRestart, RunRecord};

impl RunRecord {
    /// The guest's init; `None` if it is gone.
    pub(crate) fn init(&self) -> Result<Option<OwnedFd>> {
        open(self.init_pid, self.init_inode)
    }

    /// Its monitor, or the command that waits for it; `None` if that is gone.
    pub(crate) fn monitor(&self) -> Result<Option<OwnedFd>> {
        open(self.monitor_pid, self.monitor_inode)
    }

    /// Whether init runs.
    pub(crate) fn has_init(&self) -> Result<bool> {
        runs(self.init()?)
    }

    /// Whether its monitor, or the command that waits for it, runs.
    pub(crate) fn has_monitor(&self) -> Result<bool> {
        runs(self.monitor()?)
    }
}

impl PendingRestart {
    /// Whether the monitor that is to make this start still runs.
    pub(crate) fn has_monitor(&self) -> Result<bool> {
        runs(open(self.monitor_pid, self.monitor_inode)?)
    }
}
