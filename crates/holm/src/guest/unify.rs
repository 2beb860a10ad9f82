//! Unification of guests: what their private layers have in common becomes objects.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::{Error, Result};
use super::handle::{Guest, LockedGuest};
use super::require_stopped::require_stopped;
use crate::config::Config;
use crate::disk::limit::Limits;
use crate::disk::{Layer, Place};
use crate::failed::{in_one_line, is_there, read_if_there, unless_gone};
use crate::pool::{self, Name, Pool};
use crate::step;
use crate::store::{self, Found, Progress, Switched, UnifyOptions};

/// In the mark of a switch that has been begun.
const TRIED: &str = "tried";
/// In the mark of one that was killed once, and has been begun again.
const AGAIN: &str = "tried again";

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
        Layer::Image(_) | Layer::Plain(_) | Layer::Memory(_) | Layer::ReadOnly => {
            Err(Error::OwnDisk(guest.name().clone()))
        }
    }
}

/// Gives the guest its new layer, or notes that it is to have one when it is started next.
fn switch(guest: &Guest<'_>) -> Result<Unified> {
    let locked = guest.lock()?;
    match require_stopped(&locked, "") {
        Err(Error::Running { .. } | Error::Restarting { .. }) => {
            write_mark(&due(guest), "")?;
            Ok(Unified::AtNextStart)
        }
        Err(error) => Err(error),
        Ok(()) => {
            let (_, config) = guest.config()?;
            // If this is killed, the next start does the rest.
            write_mark(&due(guest), TRIED)?;
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
    if let Err(error) = finish_marked(guest, config) {
        let name = guest.name();
        let reason = in_one_line(&error);
        guest.pool().report_repair(&format!("{name} starts with the files it has: {reason}"));
    }
    step::done("unified");
    Ok(())
}

/// A switch that was killed left a mark with [`TRIED`] and is done again, once: what kills a start
/// would kill each.
fn finish_marked(guest: &LockedGuest<'_>, config: &Config) -> Result<()> {
    let mark = due(guest);
    let Some(text) = read_if_there(&mark)? else { return Ok(()) };
    let again = match text.as_str() {
        AGAIN => return remove_mark(guest),
        TRIED => AGAIN,
        _ => TRIED,
    };
    if let Err(error) = write_mark(&mark, again) {
        remove_mark(guest)?;
        return Err(error);
    }
    switch_stopped(guest, config).map(drop)
}

/// Switches the layer of a guest that has a mark, and removes that, whether it fails or not.
fn switch_stopped(guest: &LockedGuest<'_>, config: &Config) -> Result<Switched> {
    let switched = switch_layer(guest, config);
    step::done("unify-switched");
    remove_mark(guest)?;
    switched
}

fn switch_layer(guest: &LockedGuest<'_>, config: &Config) -> Result<Switched> {
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

fn write_mark(mark: &Path, text: &str) -> Result<()> {
    fs::write(mark, text).map_err(|error| Error::io("write", mark, error))
}

fn remove_mark(guest: &Guest<'_>) -> Result<()> {
    let path = due(guest);
    unless_gone(fs::remove_file(&path)).map(drop).map_err(|error| Error::io("remove", &path, error))
}

/// The file that notes that a unification waits for the next start.
fn due(guest: &Guest<'_>) -> PathBuf {
    guest.dir().join("unify")
}
