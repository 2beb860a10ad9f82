use std::fs;

use super::directory::move_to;
use super::error::{Error, Result};
use super::handle::Guest;
use super::require_stopped::require_stopped;
use crate::failed::is_there;
use crate::pool::{self, Name};
use crate::store;

/// Whether a guest is protected from removal. A guest.toml that is broken or gone does not protect
/// it: removing the guest is one way to be rid of that error.
pub fn is_protected(guest: &Guest<'_>) -> Result<bool> {
    Ok(guest.usable_config()?.is_some_and(|config| config.protect))
}

/// Removes a stopped guest and everything in its directory. Its volumes stay: returns the names of
/// those that exist.
pub fn remove(guest: &Guest<'_>) -> Result<Vec<Name>> {
    let (pool, name) = (guest.pool(), guest.name());
    let locked = guest.lock()?;
    let volumes = volumes(guest)?;
    if is_protected(guest)? {
        return Err(Error::Protected(name.clone()));
    }
    require_stopped(&locked, ", or use `holm rm --force`")?;
    let ids = pool.recorded_ids(&guest.dir())?;
    // Before the move: what is left undone here, the guest's next start or removal does.
    if let Some(ids) = ids {
        guest.place(ids).forget()?;
    }
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
    let had_objects = is_there(&trash.join("disk/objects"))?;
    pool::remove_tree(&trash)?;
    drop(locked);
    if had_objects {
        store::request(pool)?;
    }
    Ok(volumes)
}

/// The volumes that its settings name and that exist, sorted.
fn volumes(guest: &Guest<'_>) -> Result<Vec<Name>> {
    let mut volumes = Vec::new();
    for volume in guest.usable_config()?.map_or(Vec::new(), |config| config.volumes) {
        let name = Name::new(&volume.name)?;
        if is_there(&guest.pool().volume_dir(&name))? {
            volumes.push(name);
        }
    }
    volumes.sort();
    volumes.dedup();
    Ok(volumes)
}
