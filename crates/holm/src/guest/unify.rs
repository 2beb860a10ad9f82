//! Unification of guests: what their private layers have in common becomes objects.

use std::fs::{self, File};
use std::path::PathBuf;

use super::error::{Error, Result};
use super::handle::{Guest, LockedGuest};
use super::require_stopped::require_stopped;
use crate::config::Config;
use crate::disk::limit::Limits;
use crate::disk::{Layer, Place};
use crate::failed::{in_one_line, is_there, unless_gone};
use crate::pool::{self, Name, Pool};
use crate::step;
use crate::store::{self, Found, Progress, Switched, UnifyOptions};

/// What has become of a guest's files.
#[derive(Debug)]
pub enum Unified {
    /// It does not run, so its files are objects now.
    Done(Switched),
    /// It runs: that happens when it is started next.
    AtNextStart,
    /// Nothing was asked for but to look, or there is nothing to do.
    Unchanged,
}

/// Unifies guests. Calls `progress` a few times a second, and `report` with what was found in each
/// guest and what has become of it, in the order of the names.
///
/// While files are read, no guest is locked. Guests with `share = false` must not be among them.
pub fn unify(
    pool: &Pool,
    names: &[Name],
    options: &UnifyOptions,
    progress: &mut dyn FnMut(Progress),
    mut report: impl FnMut(Found, Result<Unified>),
) -> Result<()> {
    // Two would compute the same digests twice.
    let lock = pool.lock("unify")?;
    let found = store::prepare(pool, names, options, progress)?;
    for (name, found) in names.iter().zip(found) {
        let guest = Guest::new(pool, name);
        let done = if options.dry_run || found.files == 0 {
            Ok(Unified::Unchanged)
        } else {
            switch(&guest)
        };
        report(found, done);
    }
    drop(lock);
    Ok(())
}

/// Refuses a guest with `share = false`, and one whose files are not on the host's filesystem.
pub fn require_shared(guest: &Guest<'_>) -> Result<()> {
    let (_, config) = guest.config()?;
    if config.unshared {
        return Err(Error::Unshared(guest.name().clone()));
    }
    match Place::new(guest.pool(), guest.name(), 0).look(&config.disk)? {
        Layer::Disk(_) => Ok(()),
        Layer::Image(_) | Layer::Memory(_) => Err(Error::OwnDisk(guest.name().clone())),
    }
}

/// Gives the guest its new layer, or notes that it is to have one when it is started next.
fn switch(guest: &Guest<'_>) -> Result<Unified> {
    let locked = guest.lock()?;
    match require_stopped(&locked, "") {
        Err(Error::Running { .. } | Error::Restarting { .. }) => {
            let path = due(guest);
            File::create(&path).map_err(|error| Error::io("write", &path, error))?;
            Ok(Unified::AtNextStart)
        }
        Err(error) => Err(error),
        Ok(()) => {
            let (_, config) = guest.config()?;
            Ok(Unified::Done(switch_stopped(&locked, &config)?))
        }
    }
}

/// Does what a unification has left for this start. The guest is started with the layer that it
/// has if that fails: it contains the same files.
pub(super) fn finish(guest: &LockedGuest<'_>, config: &Config) -> Result<()> {
    if !is_there(&due(guest))? {
        return Ok(());
    }
    if let Err(error) = switch_stopped(guest, config) {
        let name = guest.name();
        let reason = in_one_line(&error);
        guest.pool().report_repair(&format!("{name} starts with the files it has: {reason}"));
    }
    step::done("unified");
    Ok(())
}

fn switch_stopped(guest: &LockedGuest<'_>, config: &Config) -> Result<Switched> {
    let path = due(guest);
    // First: what fails now would fail at each start.
    unless_gone(fs::remove_file(&path)).map_err(|error| Error::io("remove", &path, error))?;
    if config.unshared {
        return Ok(Switched::default());
    }
    let (base, _pin) = store::pin(guest.pool(), &Name::new(&config.base)?)?;
    let switched = store::switch(guest.pool(), guest.name(), &base)?;
    pool::sync(&guest.dir())?;
    if Limits::of(&config.disk).any()
        && let Some(ids) = guest.pool().recorded_ids(&guest.dir())?
    {
        // The objects are charged to it.
        guest.place(ids).ready(&config.disk)?;
    }
    Ok(switched)
}

/// The file that notes that a unification waits for the next start.
fn due(guest: &Guest<'_>) -> PathBuf {
    guest.dir().join("unify")
}
