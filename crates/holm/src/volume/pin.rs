//! Pins, which keep volumes from being removed.

use super::{Result, Volume, load};
use crate::pool::{Lock, Name, Pool};

/// Keeps a volume from being removed until it is dropped.
#[derive(Debug)]
pub struct Pin {
    _lock: Lock,
}

/// Loads the volume `name` and pins it. A start pins its volumes until its run record names them.
pub(super) fn pin(pool: &Pool, name: &Name) -> Result<(Volume, Pin)> {
    let dir = pool.volume_dir(name);
    let what = format_args!("volume {name}");
    loop {
        let lock = match Lock::shared(&dir, pool.waiting(&what)) {
            Ok(lock) => lock,
            // If the volume does not exist, `load` has the better error.
            Err(error) => return load(pool, name).and(Err(error.into())),
        };
        // While this waited, the volume may have been removed and another made by its name.
        if lock.is_of(&dir)? {
            return Ok((load(pool, name)?, Pin { _lock: lock }));
        }
    }
}
