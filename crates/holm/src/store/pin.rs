//! Keeping a base from being removed.

use super::base::{Base, load};
use super::directory;
use super::error::Error;
use crate::pool::{Lock, Name, Pool};

/// Keeps a base from being removed while this exists, also across `exec` if the descriptor is
/// passed on.
#[derive(Debug)]
pub struct Pin {
    _lock: Lock,
}

/// Loads the base `name` and pins it. Whoever writes a guest.toml, or starts a guest that has none,
/// does so while its base is pinned.
pub fn pin(pool: &Pool, name: &Name) -> Result<(Base, Pin), Error> {
    let dir = pool.base_dir(name);
    loop {
        let lock = match Lock::shared(&dir) {
            Ok(lock) => lock,
            // It does not exist, which `load` says better; or it was imported just now.
            Err(error) => return load(pool, name).and(Err(error.into())),
        };
        // While this waited the base may have been removed, and another have got its name.
        if lock.is_of(&dir) {
            return Ok((load(pool, name)?, Pin { _lock: lock }));
        }
    }
}

/// Pins all bases. Whoever renames a guest does so meanwhile: [`remove`](super::remove) could
/// otherwise miss its guest.toml while it looks through the guests.
pub fn pin_all(pool: &Pool) -> Result<Pin, Error> {
    Ok(Pin { _lock: Lock::shared(&directory::bases(pool))? })
}
