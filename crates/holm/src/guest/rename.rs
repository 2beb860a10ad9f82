use std::fs;

use super::directory::move_to;
use super::error::{Error, Result};
use super::handle::Guest;
use super::require_stopped::require_stopped;
use crate::Failed;
use crate::pool::Name;
use crate::store;

/// Renames a stopped guest.
pub fn rename(guest: &Guest<'_>, name: &Name) -> Result<()> {
    let (pool, old, new) = (guest.pool(), guest.name(), Guest::new(guest.pool(), name));
    let locked = guest.lock()?;
    require_stopped(&locked, "")?;
    let _bases = store::pin_all(pool)?;
    if new.has_dir()? {
        return Err(Error::Exists(name.clone()));
    }
    // First, because a sweep would release ids whose owner does not exist, though not at once.
    let ids = pool.recorded_ids(&guest.dir())?;
    if let Some(ids) = ids {
        pool.transfer_ids(ids, old, name)?;
    }
    if let Err(error) = move_to(&guest.dir(), &new.dir()) {
        if let Some(ids) = ids {
            pool.transfer_ids(ids, name, old)?;
        }
        return Err(match error {
            Error::Failed(Failed { source, .. })
                if source.kind() == std::io::ErrorKind::AlreadyExists =>
            {
                Error::Exists(name.clone())
            }
            error => error,
        });
    }
    let _ = fs::remove_dir_all(guest.run_dir());
    guest.sync_entry()
}
