//! Pins, which keep bases from being removed.

use super::base::{Base, load};
use super::directory;
use super::error::Error;
use crate::pool::{Lock, Name, Pool};

/// Keeps a base from being removed until it is dropped.
#[derive(Debug)]
pub struct Pin {
    _lock: Lock,
}

/// Loads the base `name` and pins it. A command that writes a guest.toml, or starts a guest without
/// one, must have its base pinned meanwhile.
pub fn pin(pool: &Pool, name: &Name) -> Result<(Base, Pin), Error> {
    let dir = pool.base_dir(name);
    let what = format_args!("base {name}");
    loop {
        let lock = match Lock::shared(&dir, pool.waiting(&what)) {
            Ok(lock) => lock,
            // If the base does not exist, `load` has the better error.
            Err(error) => return load(pool, name).and(Err(error.into())),
        };
        // While this waited, the base may have been removed and another imported by its name.
        if lock.is_of(&dir)? {
            return Ok((load(pool, name)?, Pin { _lock: lock }));
        }
    }
}

/// Pins all bases, while a guest is renamed: [`remove`](super::remove) could otherwise miss its
/// guest.toml.
pub fn pin_all(pool: &Pool) -> Result<Pin, Error> {
    Ok(Pin { _lock: Lock::shared(&directory::bases(pool), pool.waiting(&"the bases"))? })
}
