//! Removing a base.

use std::io;

use super::base::load;
use super::clean::clean;
use super::error::Error;
use super::staging::retire;
use super::users::{guests_configured_with, guests_running_on};
use super::{directory, gc};
use crate::Failed;
use crate::pool::{Name, Pool, remove_tree};

/// Removes a base, and the objects that no other base has.
///
/// Refused while a guest.toml names the base, a guest runs on it, or it is [pinned](super::pin).
pub fn remove(pool: &Pool, name: &Name) -> Result<(), Error> {
    clean(pool)?;
    match load(pool, name) {
        // Removing a damaged base is the remedy.
        Err(Error::Damaged { .. } | Error::Meta { .. }) => {}
        other => drop(other?),
    }
    let bases = directory::bases(pool);
    let all = directory::lock_all(pool)?;
    let dir = pool.base_dir(name);
    let in_use = |users: String, remedy: &str| {
        Err(Error::InUse { name: name.clone(), users, remedy: remedy.to_owned() })
    };
    let alone = match directory::lock(&dir) {
        Ok(lock) => lock,
        Err(Error::Failed(Failed { source, .. })) if source.kind() == io::ErrorKind::WouldBlock => {
            return in_use(
                "an ephemeral guest, or a guest that is being created or changed".into(),
                "remove it",
            );
        }
        Err(e) => return Err(e),
    };
    let named = (guests_configured_with(pool, name)?, "", "remove");
    // A running guest uses the base that it was started on, whatever its guest.toml says now.
    let running = (guests_running_on(pool, name)?, ", running", "stop or restart");
    for (guests, how, verb) in [named, running] {
        let (users, them) = match guests.as_slice() {
            [] => continue,
            [one] => (format!("guest {one}{how}"), "it"),
            [many @ .., last] => (format!("guests {} and {last}{how}", many.join(", ")), "them"),
        };
        return in_use(users, &format!("{verb} {them}"));
    }
    let old = retire(&bases, &dir)?;
    drop((alone, all));
    // Not earlier: a collection before the rename would have found the base's list.
    gc::request(pool)?;
    remove_tree(&old)?;
    gc::collect(pool)?;
    Ok(())
}
