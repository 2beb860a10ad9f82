//! Removing a guest's cgroups, including those that the guest has made itself.

use std::time::Duration;

use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use super::guest::{GUEST, GuestCgroup};
use super::{Error, Result, walk};
use crate::step;

/// How long killed processes may take to end.
const END: Duration = Duration::from_secs(2);
/// How many times the removal is tried. Only a process of the host could make more cgroups
/// meanwhile.
const TRIES: u32 = 5;

impl GuestCgroup {
    /// Removes the guest's cgroups in every hierarchy, and those that it has made itself. An error
    /// if processes are left: call `kill` first.
    ///
    /// `<pool>/NAME` on v2 goes last: as long as it is there, the next command finds it and goes on
    /// where this one was killed.
    pub fn remove(self) -> Result<()> {
        let root = self.layout().open_v2()?;
        for _ in 0..TRIES {
            self.remove_inner()?;
            step::done("cleanup-cgroup-inner");
            if !self.only_v2 {
                for root in self.layout().v1_roots()? {
                    walk::remove_empty(root, &self.path)?;
                }
            }
            match unlinkat(&root, &*self.path, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                // Another command that looked at the guest has made the inner one again.
                Err(Errno::BUSY | Errno::NOTEMPTY) => {}
                Err(e) => return Err(self.io("remove cgroup", "", e)),
            }
        }
        Err(self.io("remove cgroup", "", Errno::BUSY))
    }

    /// Removes everything below `<pool>/NAME` on v2.
    fn remove_inner(&self) -> Result<()> {
        for _ in 0..TRIES {
            // Most guests leave nothing below `guest`, so this usually succeeds.
            match unlinkat(&self.dir, GUEST, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                Err(Errno::BUSY | Errno::NOTEMPTY) => {}
                Err(e) => return Err(self.io("remove cgroup", GUEST, e)),
            }
            self.wait_empty(END).map_err(|e| match e {
                Error::Timeout { path, pids } => Error::Populated { path, pids },
                e => e,
            })?;
            match walk::remove_below(&self.dir) {
                Ok(()) | Err(Errno::BUSY) => {}
                Err(e) => return Err(self.io("remove the guest's own cgroups in", "", e)),
            }
        }
        Err(self.io("remove cgroup", GUEST, Errno::BUSY))
    }
}
