//! Unification: files that private layers have in common become objects.
//!
//! [`prepare`] changes no guest, so that guests may run meanwhile. [`switch`] gives one guest,
//! which is stopped and locked, its new layer.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::clean::clean;
use super::error::Error;
use super::import::Progress;
use super::{Base, directory, gc, program};
use crate::pool::{Name, Pool};

/// Which files are unified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnifyOptions {
    /// Only look.
    pub dry_run: bool,
    /// Only files of at least so many bytes.
    pub min_size: u64,
    /// Only files that have not changed for so long.
    pub min_age: Duration,
    /// No files whose paths in the guest match one of these patterns.
    pub exclude: Vec<String>,
    /// Leave the processors and the disk to others.
    pub nice: bool,
}

/// What was found in a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The guest.
    pub guest: String,
    /// How many of its files can become objects, or are bodies of some already.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many files were left out because they have changed lately.
    pub recent: u64,
}

/// What a guest's new layer has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switched {
    /// How many files have become objects.
    pub files: u64,
    /// What they took on the disk, in bytes.
    pub freed: u64,
}

/// A line of the program's output.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Progress(Progress),
    Found(Found),
}

/// Computes the digests of files in the private layers of `guests`, and stores the bodies that
/// several of them have. Calls `progress` a few times a second.
pub fn prepare(
    pool: &Pool,
    guests: &[Name],
    options: &UnifyOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Found>, Error> {
    clean(pool)?;
    let objects = directory::share_objects(pool)?;
    let mut command = program::command(pool)?;
    command.arg("--unify");
    command.arg("--min-size").arg(options.min_size.to_string());
    command.arg("--min-age").arg(options.min_age.as_secs().to_string());
    for pattern in &options.exclude {
        command.arg("--exclude").arg(pattern);
    }
    for (flag, is_set) in [("--dry-run", options.dry_run), ("--nice", options.nice)] {
        command.args(is_set.then_some(flag));
    }
    command.arg("--").args(guests.iter().map(Name::as_str));
    let mut found = Vec::with_capacity(guests.len());
    let outcome = program::run(command, |line| match serde_json::from_str(line) {
        Ok(Line::Progress(step)) => progress(step),
        Ok(Line::Found(one)) => found.push(one),
        Err(_) => {}
    })?;
    drop(objects);
    match outcome {
        Ok(()) => Ok(found),
        Err(message) => {
            gc::request(pool)?;
            clean(pool)?;
            Err(Error::Unify { what: "the guests".to_owned(), message })
        }
    }
}

/// Gives a guest a layer in which the files that were prepared are objects. The caller has locked
/// the guest, which does not run, and pinned its base.
pub fn switch(pool: &Pool, guest: &Name, base: &Base) -> Result<Switched, Error> {
    let objects = directory::share_objects(pool)?;
    let mut command = program::command(pool)?;
    command.arg("--switch").arg("--base").arg(base.name.as_str()).arg("--").arg(guest.as_str());
    let mut switched = Switched::default();
    let outcome = program::run(command, |line| {
        if let Ok(done) = serde_json::from_str(line) {
            switched = done;
        }
    })?;
    drop(objects);
    outcome.map_err(|message| Error::Unify { what: format!("guest {guest}"), message })?;
    Ok(switched)
}
