//! Removing a base, and keeping one from being removed.

use std::fs::{self, File};
use std::io;

use rustix::fs::FlockOperation;

use super::stage::{lock_dir, retire};
use super::{Base, Error, bases_dir, clean, gc, load};
use crate::Failed;
use crate::pool::{Name, Pool, remove_tree};

/// Keeps a base where it is while this lives, also across `exec` if the descriptor is passed on.
#[derive(Debug)]
pub struct Hold {
    _lock: File,
}

/// Loads the base `name` and keeps it from being removed until the [`Hold`] is dropped. Whoever
/// writes a guest.toml, or starts a guest that has none, does it while holding its base.
pub fn hold(pool: &Pool, name: &Name) -> Result<(Base, Hold), Error> {
    let dir = pool.base_dir(name);
    let lock = match lock_dir(&dir, FlockOperation::LockShared) {
        Ok(lock) => lock,
        // Not there: `load` says so better, or it has just come.
        Err(error) => return load(pool, name).and(Err(error)),
    };
    Ok((load(pool, name)?, Hold { _lock: lock }))
}

/// Removes a base, and the objects that no other base has.
///
/// Refused while a guest's guest.toml names it, or while somebody [holds](hold) it.
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
    let in_use = |users: String, them| Err(Error::InUse { name: name.clone(), users, them });
    let held = match lock_dir(&dir, FlockOperation::NonBlockingLockExclusive) {
        Ok(lock) => lock,
        Err(Error::Failed(Failed { source, .. })) if source.kind() == io::ErrorKind::WouldBlock => {
            return in_use("a guest that is being created or runs only once".into(), "it");
        }
        Err(e) => return Err(e),
    };
    let users = users(pool, name)?;
    match users.as_slice() {
        [] => {}
        [one] => return in_use(format!("guest {one}"), "it"),
        [many @ .., last] => {
            return in_use(format!("guests {} and {last}", many.join(", ")), "them");
        }
    }
    let old = retire(&bases, &dir)?;
    drop((held, all));
    // Not before: a collection that ran in between would have seen the base and be content.
    gc::want(pool)?;
    remove_tree(&old)?;
    gc::run(pool)
}

/// The guests whose guest.toml names the base, sorted.
fn users(pool: &Pool, base: &Name) -> Result<Vec<String>, Error> {
    let mut users = Vec::new();
    for guest in pool.guests()? {
        let path = pool.guest_dir(&guest).join("guest.toml");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(Error::io("read", &path)(e)),
        };
        if names_base(&text, base.as_str()) {
            users.push(guest.to_string());
        }
    }
    users.sort();
    Ok(users)
}

/// Whether the guest.toml `text` has `base = "NAME"`. A text that does not parse counts if the name
/// stands in it: a guest edited into nonsense must not lose its base.
fn names_base(text: &str, name: &str) -> bool {
    match text.parse::<toml::Table>() {
        Ok(table) => table.get("base").and_then(toml::Value::as_str) == Some(name),
        Err(_) => text.contains(name),
    }
}

#[cfg(test)]
mod tests {
    use super::names_base;

    #[test]
    fn guests_base() {
        for (text, want) in [
            ("base = \"deb\"\n", true),
            ("# deb\nbase = 'deb'", true),
            ("base = \"debian\"\n", false),
            ("hostname = \"deb\"\n", false),
            ("", false),
            ("base = \"deb\"\n = nonsense", true),
            ("base = \"other\"\n = nonsense", false),
        ] {
            assert_eq!(names_base(text, "deb"), want, "{text:?}");
        }
    }
}
