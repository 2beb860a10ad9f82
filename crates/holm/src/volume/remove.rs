//! Removing a volume.

use super::users::users;
use super::{Error, Result, load, quota};
use crate::failed::is_there;
use crate::pool::{self, Lock, Name, Pool};
use crate::step;

/// Removes a volume and what is in it. Refused while a guest.toml names it or a guest runs with it.
pub fn remove(pool: &Pool, name: &Name) -> Result<()> {
    let project = match load(pool, name) {
        // Removing a damaged one is a remedy.
        Err(Error::Damaged { .. }) => None,
        volume => volume?.meta.project,
    };
    let dir = pool.volume_dir(name);
    let lock = require_without_guests(pool, name)?;
    let trash = pool.root().join("tmp").join(format!("rm-volume-{name}-{}", std::process::id()));
    pool.make_tmp()?;
    std::fs::rename(&dir, &trash).map_err(|error| Error::io("remove", &dir, error))?;
    pool::sync(&pool.volumes_dir())?;
    step::done("volume-retired");
    drop(lock);
    if let Some(project) = project {
        quota::lift(pool, project)?;
    }
    pool.clean_tmp();
    if is_there(&trash)? {
        pool::remove_tree(&trash)?;
    }
    Ok(())
}

/// Locks a volume that no guest has.
fn require_without_guests(pool: &Pool, name: &Name) -> Result<Lock> {
    let lock = require_unused(pool, name)?;
    let named = users(pool, name)?.named;
    let Some(one) = named.first() else { return Ok(lock) };
    let remedy = format!("remove the guest, or take the volume from it: `holm edit {one}`");
    Err(Error::InUse { name: name.clone(), users: listed(&named), remedy })
}

/// Locks a volume with which no guest runs. Those that are named only do not start meanwhile.
pub(super) fn require_unused(pool: &Pool, name: &Name) -> Result<Lock> {
    let in_use =
        |users: String, remedy: String| Err(Error::InUse { name: name.clone(), users, remedy });
    let lock = pool.try_lock_volume(name)?;
    let running = users(pool, name)?.running;
    if !running.is_empty() {
        let them = running.join(" ");
        return in_use(
            format!("{}, running", listed(&running)),
            format!("stop it first: `holm stop {them}`"),
        );
    }
    lock.map_or_else(
        || {
            let remedy = "try again when it has started".to_owned();
            in_use("a guest that is being started".to_owned(), remedy)
        },
        Ok,
    )
}

/// Guests as a list for a sentence.
fn listed(guests: &[String]) -> String {
    match guests {
        [one] => format!("guest {one}"),
        many => format!("guests {}", many.join(", ")),
    }
}
