//! Removing a base, and keeping one from being removed.

use std::io;

use rustix::fs::FlockOperation;

use super::stage::{lock_dir, retire};
use super::users::{configured, running};
use super::{Base, Error, bases_dir, clean, gc, load};
use crate::Failed;
use crate::pool::{Lock, Name, Pool, remove_tree};

/// Keeps a base where it is while this lives, also across `exec` if the descriptor is passed on.
#[derive(Debug)]
pub struct Hold {
    _lock: Lock,
}

/// Loads the base `name` and keeps it from being removed until the [`Hold`] is dropped. Whoever
/// writes a guest.toml, or starts a guest that has none, does it while holding its base.
pub fn hold(pool: &Pool, name: &Name) -> Result<(Base, Hold), Error> {
    let dir = pool.base_dir(name);
    loop {
        let lock = match Lock::shared(&dir) {
            Ok(lock) => lock,
            // Not there: `load` says so better, or it has just come.
            Err(error) => return load(pool, name).and(Err(error.into())),
        };
        // What was waited for may have been its removal, and its name may be another's by now.
        if lock.is_of(&dir) {
            return Ok((load(pool, name)?, Hold { _lock: lock }));
        }
    }
}

/// Keeps all bases from being removed until the [`Hold`] is dropped. Whoever moves a guest.toml does it while holding
/// them: a look at all guests could miss it.
pub fn hold_all(pool: &Pool) -> Result<Hold, Error> {
    Ok(Hold { _lock: Lock::shared(&bases_dir(pool))? })
}

/// Removes a base, and the objects that no other base has.
///
/// Refused while a guest's guest.toml names it, while a guest runs on it, or while somebody [holds](hold) it.
pub fn remove(pool: &Pool, name: &Name) -> Result<(), Error> {
    clean(pool)?;
    match load(pool, name) {
        // Removing is the way out.
        Err(Error::Damaged { .. } | Error::Meta { .. }) => {}
        other => drop(other?),
    }
    let bases = bases_dir(pool);
    let all = lock_dir(&bases, FlockOperation::LockExclusive)?;
    let dir = pool.base_dir(name);
    let in_use = |users: String, remedy: &str| {
        Err(Error::InUse { name: name.clone(), users, remedy: remedy.to_owned() })
    };
    let held = match lock_dir(&dir, FlockOperation::NonBlockingLockExclusive) {
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
    drop((held, all));
    // Not before: a collection that ran in between would have seen the base and be content.
    gc::want(pool)?;
    remove_tree(&old)?;
    gc::run(pool)
}
