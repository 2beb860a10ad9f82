use std::{fs, io};

use super::directory::move_to;
use super::error::{Error, Result};
use super::handle::Guest;
use super::require_stopped::require_stopped;
use crate::pool;

/// Removes a stopped guest and everything in its directory.
pub fn remove(guest: &Guest<'_>) -> Result<()> {
    let (pool, name) = (guest.pool(), guest.name());
    let locked = guest.lock()?;
    match guest.config() {
        Ok((_, config)) if config.protect => return Err(Error::Protected(name.clone())),
        // A guest.toml that is broken or gone does not protect the guest: removing it is one way to
        // be rid of the error.
        Ok(_) | Err(Error::Config(_)) => {}
        Err(Error::Failed(failed))
            if matches!(
                failed.source.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::InvalidData
            ) => {}
        Err(error) => return Err(error),
    }
    require_stopped(&locked, ", or use `holm rm --force`")?;
    let ids = pool.recorded_ids(&guest.dir())?;
    let trash = pool.root().join("tmp").join(format!("rm-{name}-{}", std::process::id()));
    pool.make_tmp()?;
    move_to(&guest.dir(), &trash)?;
    // First the guest, then its ids: if it came back after a power failure without them, another
    // guest could have them by then.
    guest.sync_entry()?;
    if let Some(ids) = ids {
        pool.release_ids(name, ids, None);
        pool.sync_ids()?;
    }
    let _ = fs::remove_dir_all(guest.run_dir());
    pool.clean_tmp();
    pool::remove_tree(&trash)?;
    drop(locked);
    Ok(())
}
