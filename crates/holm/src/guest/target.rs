use super::error::{Error, Result};
use super::handle::{Guest, LockedGuest};
use super::reconcile::reconcile;
use super::running::{RunningGuest, running};
use crate::pool;

/// A guest that a verb acts on.
#[derive(Debug)]
pub(super) enum Target<'a> {
    /// A guest with a directory, locked; it may or may not run.
    Persistent(LockedGuest<'a>, Option<RunningGuest>),
    /// A running ephemeral guest. It has no directory and no lock: the `holm run` that waits
    /// for it cleans up.
    Ephemeral(RunningGuest),
}

impl<'a> Target<'a> {
    /// Locks the guest if it has a directory, and finds out whether it runs.
    pub fn of(guest: &Guest<'a>) -> Result<Self> {
        match guest.lock() {
            Ok(locked) => {
                let running = reconcile(&locked)?;
                Ok(Self::Persistent(locked, running))
            }
            Err(missing @ Error::Pool(pool::Error::NoGuest { .. })) => match running(guest) {
                Ok(found) if found.record.ephemeral && found.record.has_monitor()? => {
                    Ok(Self::Ephemeral(found))
                }
                Ok(_) | Err(Error::NotRunning(_) | Error::Pool(pool::Error::NoGuest { .. })) => {
                    Err(missing)
                }
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// The running guest, still locked; an error if it does not run.
    pub fn running(&self, guest: &Guest<'_>) -> Result<&RunningGuest> {
        match self {
            Self::Persistent(_, Some(running)) | Self::Ephemeral(running) => Ok(running),
            Self::Persistent(_, None) => Err(Error::NotRunning(guest.name().clone())),
        }
    }

    /// Unlocks the guest; returns it if it runs.
    pub fn unlock(self) -> Option<RunningGuest> {
        match self {
            Self::Persistent(_, running) => running,
            Self::Ephemeral(running) => Some(running),
        }
    }
}
