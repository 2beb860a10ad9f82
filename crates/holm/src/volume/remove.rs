//! Removing a volume.

use super::users::users;
use super::{Error, Result, load};
use crate::failed::is_there;
use crate::pool::{self, Name, Pool};
use crate::step;

/// Removes a volume and what is in it. Refused while a guest.toml names it or a guest runs with it.
pub fn remove(pool: &Pool, name: &Name) -> Result<()> {
    match load(pool, name) {
        // Removing a damaged one is a remedy.
        Err(Error::Damaged { .. }) => {}
        volume => drop(volume?),
    }
    let dir = pool.volume_dir(name);
    let in_use =
        |users: String, remedy: String| Err(Error::InUse { name: name.clone(), users, remedy });
    let lock = pool.try_lock_volume(name)?;
    let users = users(pool, name)?;
    // Those that run are named first: their remedy comes first.
    if !users.running.is_empty() {
        let them = users.running.join(" ");
        return in_use(
            format!("{}, running", listed(&users.running)),
            format!("stop it first: `holm stop {them}`"),
        );
    }
    if !users.named.is_empty() {
        let one = &users.named[0];
        return in_use(
            listed(&users.named),
            format!("remove the guest, or take the volume from it: `holm edit {one}`"),
        );
    }
    let Some(lock) = lock else {
        let remedy = "try again when it has started".to_owned();
        return in_use("a guest that is being started".to_owned(), remedy);
    };
    let trash = pool.root().join("tmp").join(format!("rm-volume-{name}-{}", std::process::id()));
    pool.make_tmp()?;
    std::fs::rename(&dir, &trash).map_err(|error| Error::io("remove", &dir, error))?;
    pool::sync(&pool.volumes_dir())?;
    step::done("volume-retired");
    drop(lock);
    pool.clean_tmp();
    if is_there(&trash)? {
        pool::remove_tree(&trash)?;
    }
    Ok(())
}

/// Guests as a list for a sentence.
fn listed(guests: &[String]) -> String {
    match guests {
        [one] => format!("guest {one}"),
        many => format!("guests {}", many.join(", ")),
    }
}
