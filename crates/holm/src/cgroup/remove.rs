//! Removing a guest's cgroups with those that the guest made in them.

use std::time::Duration;

use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use super::guest::{GUEST, GuestCgroup};
use super::{Error, Result, walk};

/// How long the last processes may take to leave after they were killed.
const LEAVE: Duration = Duration::from_secs(2);
/// How often a subtree is walked again: only a process of the host itself could make more meanwhile.
const TRIES: u32 = 5;

impl GuestCgroup {
    /// Removes the guest's cgroups in every hierarchy, and those that it made itself. An error if processes
    /// are left; `kill` first.
    pub fn remove(self) -> Result<()> {
        self.remove_v2()?;
        if self.only_v2 {
            return Ok(());
        }
        for root in self.layout().v1_roots() {
            walk::remove_empty(root, &self.path)?;
        }
        Ok(())
    }

    fn remove_v2(&self) -> Result<()> {
        let root = self.layout().open_v2()?;
        for _ in 0..TRIES {
            // Most guests leave nothing below `guest`, and the exec leaf at most.
            let removed = unlinkat(&self.dir, GUEST, AtFlags::REMOVEDIR)
                .or_else(|e| if e == Errno::NOENT { Ok(()) } else { Err(e) })
                .and_then(|()| unlinkat(&root, &*self.path, AtFlags::REMOVEDIR));
            match removed {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                Err(Errno::BUSY | Errno::NOTEMPTY) => {}
                Err(e) => return Err(self.io("remove cgroup", "", e)),
            }
            self.wait_empty(LEAVE).map_err(|e| match e {
                Error::Timeout { path, pids } => Error::Populated { path, pids },
                e => e,
            })?;
            match walk::remove_below(&self.dir) {
                Ok(()) | Err(Errno::BUSY) => {}
                Err(e) => return Err(self.io("remove what the guest made in cgroup", "", e)),
            }
        }
        Err(self.io("remove cgroup", "", Errno::BUSY))
    }
}
