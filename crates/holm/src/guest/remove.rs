use std::fs;

use super::directory::move_to;
use super::error::{Error, Result};
use super::handle::Guest;
use super::require_stopped::require_stopped;
use crate::pool;

/// Removes a stopped guest and everything in its directory.
pub fn remove(guest: &Guest<'_>) -> Result<()> {
    let (pool, name) = (guest.pool(), guest.name());
    let locked = guest.lock()?;
    // A broken guest.toml does not protect the guest: removing it is one way to be rid of the
    // error.
    if guest.config().is_ok_and(|(_, config)| config.protect) {
        return Err(Error::Protected(name.clone()));
    }
    require_stopped(&locked, ", or use `holm rm --force`")?;
    let ids = pool.recorded_ids(&guest.dir());
    let trash = pool.root().join("tmp").join(format!("rm-{name}-{}", std::process::id()));
    pool.make_tmp()?;
    move_to(&guest.dir(), &trash)?;
    if let Some(ids) = ids {
        pool.release_ids(name, ids, None);
    }
    let _ = fs::remove_dir_all(guest.run_dir());
    pool.clean_tmp();
    pool::remove_tree(&trash)?;
    drop(locked);
    Ok(())
}
