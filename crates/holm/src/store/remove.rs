//! Removing a base.

use std::io;

use rustix::fs::FlockOperation;

use super::base::load;
use super::error::Error;
use super::stage::{clean, retire};
use super::users::{configured, running};
use super::{directory, gc};
use crate::Failed;
use crate::pool::{Name, Pool, remove_tree};

/// Removes a base, and the objects that no other base has.
///
/// Refused while a guest's guest.toml names it, while a guest runs on it, or while somebody [pins](super::pin) it.
pub fn remove(pool: &Pool, name: &Name) -> Result<(), Error> {
    clean(pool)?;
    match load(pool, name) {
        // Removing is the way out.
        Err(Error::Damaged { .. } | Error::Meta { .. }) => {}
        other => drop(other?),
    }
    let bases = directory::bases(pool);
    let all = directory::lock(&bases, FlockOperation::LockExclusive)?;
    let dir = pool.base_dir(name);
    let in_use = |users: String, remedy: &str| {
        Err(Error::InUse { name: name.clone(), users, remedy: remedy.to_owned() })
    };
    let unpinned = match directory::lock(&dir, FlockOperation::NonBlockingLockExclusive) {
        Ok(lock) => lock,
        Err(Error::Failed(Failed { source, .. })) if source.kind() == io::ErrorKind::WouldBlock => {
            return in_use(
                "a guest that is being created or changed, or runs only once".into(),
                "remove it",
            );
        }
        Err(e) => return Err(e),
    };
    let named = (configured(pool, name)?, "", "remove");
    // Those that start on another base next time have yet to open most of what is in this one.
    let running = (running(pool, name)?, ", running", "stop or restart");
    for (guests, how, verb) in [named, running] {
        let (users, them) = match guests.as_slice() {
            [] => continue,
            [one] => (format!("guest {one}{how}"), "it"),
            [many @ .., last] => (format!("guests {} and {last}{how}", many.join(", ")), "them"),
        };
        return in_use(users, &format!("{verb} {them}"));
    }
    let old = retire(&bases, &dir)?;
    drop((unpinned, all));
    // Not before: a collection that ran in between would have seen the base and be content.
    gc::want(pool)?;
    remove_tree(&old)?;
    gc::run(pool)
}
