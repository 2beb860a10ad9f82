use std::fs;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::error::{Error, Result};
use super::handle::Guest;
use super::remove::is_protected;
use super::require_stopped::require_stopped;
use crate::config::{Change, edit_text};
use crate::disk::{Layer, Place};
use crate::failed::{is_there, unless_gone};
use crate::pool::{self, Name};
use crate::step;
use crate::store;

/// What a unification keeps beside the private layer that it is about.
const UNIFICATION: [&str; 3] = ["unify", "digests", "prepared"];

/// Gives a stopped guest an empty private layer on `base`, or on the base that it has. Settings,
/// volumes, ids and machine id stay. Returns the base.
///
/// Killed at any moment, the guest has its old layer or an empty one. Only between the two last
/// steps has it an empty one on its old base: the same command again finishes the change.
pub fn rebuild(guest: &Guest<'_>, base: Option<&Name>) -> Result<Name> {
    let (pool, name) = (guest.pool(), guest.name());
    let locked = guest.lock()?;
    if is_protected(guest)? {
        return Err(Error::Protected(name.clone()));
    }
    require_stopped(&locked, ", or use `holm rebuild --force`")?;
    let (before, config) = guest.config()?;
    let (base, after) = match base {
        Some(base) => (base.clone(), edit_text(&before, &[Change::set("base", base.as_str())])?),
        None => (Name::new(&config.base)?, before.clone()),
    };
    // Until guest.toml names it, nothing else keeps it from being removed.
    let (_base, _pin) = store::pin(pool, &base)?;
    let disk = guest.dir().join("disk");
    let had_objects = is_there(&disk.join("objects"))?;
    pool.make_tmp()?;
    pool.clean_tmp();
    // Afterwards the old layer is there, and the next command removes what a killed one left.
    let beside = pool.root().join("tmp").join(format!("new-disk-{name}-{}", std::process::id()));
    fs::create_dir(&beside).map_err(|error| Error::io("make the directory", &beside, error))?;
    let exchanged = exchange(guest, &beside, &disk);
    if exchanged.is_ok() && after != before {
        step::done("rebuilt");
        pool.write(&guest.config_path(), &after)?;
    }
    pool::remove_tree(&beside)?;
    exchanged?;
    drop(locked);
    if had_objects {
        store::request(pool)?;
    }
    Ok(base)
}

fn exchange(guest: &Guest<'_>, beside: &Path, disk: &Path) -> Result<()> {
    Layer::create_empty(beside)?;
    let new = beside.join("disk");
    Layer::mark_new(&new)?;
    // Before: what is known of the old layer must not be taken for the new one's.
    for file in UNIFICATION {
        let path = guest.dir().join(file);
        unless_gone(fs::remove_file(&path)).map_err(|error| Error::io("remove", &path, error))?;
    }
    step::done("rebuild-made");
    renameat_with(CWD, &new, CWD, disk, RenameFlags::EXCHANGE)
        .map_err(|errno| Error::io("exchange", disk, errno))?;
    // Last: with a new directory beside it, an image that is gone is made anew.
    Place::new(guest.pool(), guest.name(), 0).remove_image(beside)?;
    Ok(pool::sync(&guest.dir())?)
}
