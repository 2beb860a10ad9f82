//! Removing a guest's cgroups, including those that the guest has made itself.

use std::time::Duration;

use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use super::guest::{GUEST, GuestCgroup};
use super::{Error, Result, walk};

/// How long killed processes may take to end.
const END: Duration = Duration::from_secs(2);
/// How many times the removal is tried. Only a process of the host could make more cgroups
/// meanwhile.
const TRIES: u32 = 5;

impl GuestCgroup {
    /// Removes the guest's cgroups in every hierarchy, and those that it has made itself. An error
    /// if processes are left: call `kill` first.
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
            // Most guests leave nothing below `guest`, so this usually succeeds.
            let removed = unlinkat(&self.dir, GUEST, AtFlags::REMOVEDIR)
                .or_else(|e| if e == Errno::NOENT { Ok(()) } else { Err(e) })
                .and_then(|()| unlinkat(&root, &*self.path, AtFlags::REMOVEDIR));
            match removed {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                Err(Errno::BUSY | Errno::NOTEMPTY) => {}
                Err(e) => return Err(self.io("remove cgroup", "", e)),
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
        Err(self.io("remove cgroup", "", Errno::BUSY))
    }
}
