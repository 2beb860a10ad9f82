//! Keeping a base from being removed.

use super::base::{Base, load};
use super::directory;
use super::error::Error;
use crate::pool::{Lock, Name, Pool};

/// Keeps a base where it is while this lives, also across `exec` if the descriptor is passed on.
#[derive(Debug)]
pub struct Pin {
    _lock: Lock,
}

/// Loads the base `name` and keeps it from being removed until the [`Pin`] is dropped. Whoever
/// writes a guest.toml, or starts a guest that has none, does it while the base is pinned.
pub fn pin(pool: &Pool, name: &Name) -> Result<(Base, Pin), Error> {
    let dir = pool.base_dir(name);
    loop {
        let lock = match Lock::shared(&dir) {
            Ok(lock) => lock,
            // Not there: `load` says so better, or it has just come.
            Err(error) => return load(pool, name).and(Err(error.into())),
        };
        // What was waited for may have been its removal, and its name may be another's by now.
        if lock.is_of(&dir) {
            return Ok((load(pool, name)?, Pin { _lock: lock }));
        }
    }
}

/// Keeps all bases from being removed until the [`Pin`] is dropped. Whoever moves a guest.toml
/// does it meanwhile: a look at all guests could miss it.
pub fn pin_all(pool: &Pool) -> Result<Pin, Error> {
    Ok(Pin { _lock: Lock::shared(&directory::bases(pool))? })
}
