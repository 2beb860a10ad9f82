//! What `stop` and `kill` have in common: a guest that is stopped is not started again.

use std::os::fd::OwnedFd;
use std::time::Duration;

use super::error::{Error, Result};
use super::handle::{Guest, LockedGuest};
use super::reconcile::reconcile;
use super::running::RunningGuest;
use super::target::Target;
use crate::pool;
use crate::process::ended_within;
use crate::record::since_boot;

/// How long a monitor may take to clean up after its guest has ended.
pub(super) const CLEAN_UP: Duration = Duration::from_secs(20);

/// How many seconds a `stop` may take beyond its timeout. After that
/// the `stop` itself is taken to have been killed.
const GRACE: u64 = 5;

/// A guest that a command is stopping.
#[derive(Debug)]
pub(super) struct Ending<'a> {
    guest: Guest<'a>,
    pub running: RunningGuest,
    pub init: OwnedFd,
    monitor: Option<OwnedFd>,
}

impl<'a> Ending<'a> {
    /// Records that the guest is being stopped, within `time` if that is given. Returns `None` if
    /// there was only a pending restart, which is cancelled, or if the guest has just ended.
    pub fn begin(guest: Guest<'a>, time: Option<Duration>) -> Result<Option<Self>> {
        let (locked, running) = match Target::of(&guest)? {
            Target::Persistent(locked, Some(mut running)) => {
                record_stopping(&locked, &mut running, time)?;
                (Some(locked), running)
            }
            Target::Persistent(locked, None) if locked.cancel_restart()? => return Ok(None),
            Target::Persistent(_, None) => return Err(Error::NotRunning(guest.name().clone())),
            Target::Ephemeral(running) => (None, running),
        };
        let monitor = running.record.monitor()?;
        if let Some(init) = running.record.init()? {
            return Ok(Some(Self { guest, running, init, monitor }));
        }
        // It has just ended.
        drop(locked);
        wait_for_clean_up(&guest, monitor)?;
        Ok(None)
    }

    /// Kills all processes of a guest that has not ended in time.
    pub fn kill(&mut self) -> Result<()> {
        let target = match Target::of(&self.guest) {
            Ok(target) => target,
            // It has just ended.
            Err(Error::Pool(pool::Error::NoGuest { .. })) => return Ok(()),
            Err(error) => return Err(error),
        };
        let (locked, mut running) = match target {
            Target::Persistent(_, None) => return Ok(()),
            Target::Persistent(locked, Some(running)) => (Some(locked), running),
            Target::Ephemeral(running) => (None, running),
        };
        if running.record.init_inode != self.running.record.init_inode {
            return Ok(());
        }
        if let Some(locked) = &locked {
            record_stopping(locked, &mut running, None)?;
        }
        self.running = running;
        Ok(self.running.cgroup.kill()?)
    }

    /// Waits until the guest has ended and has been cleaned up.
    pub fn finish(self) -> Result<()> {
        self.running.cgroup.wait_empty(CLEAN_UP)?;
        wait_for_clean_up(&self.guest, self.monitor)
    }
}

/// Records that the guest is being stopped. The record is valid for `time` and [`GRACE`], or
/// without a limit.
fn record_stopping(
    guest: &LockedGuest<'_>,
    running: &mut RunningGuest,
    time: Option<Duration>,
) -> Result<()> {
    running.record.stopping = true;
    running.record.stopping_until =
        time.map(|time| since_boot().saturating_add(time.as_secs()).saturating_add(GRACE));
    running.write_record(guest.name())
}

/// Waits until the monitor has cleaned up after its guest, and does so itself if it has not.
pub(super) fn wait_for_clean_up(guest: &Guest<'_>, monitor: Option<OwnedFd>) -> Result<()> {
    if let Some(monitor) = monitor {
        ended_within(&monitor, CLEAN_UP)?;
    }
    match guest.lock() {
        // An ephemeral guest has no directory.
        Err(Error::Pool(pool::Error::NoGuest { .. })) => Ok(()),
        Err(error) => Err(error),
        Ok(locked) => reconcile(&locked).map(drop),
    }
}
