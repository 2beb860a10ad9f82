//! Importing a base.

use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::base::{Base, load};
use super::clean::clean;
use super::error::Error;
use super::source::Source;
use super::{directory, gc, program};
use crate::failed::is_there;
use crate::pool::{Name, Pool};

/// The options of an import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// URL of the mirror that `debootstrap:` uses instead of the host's own.
    pub mirror: Option<String>,
}

/// A phase of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Packages are fetched and installed; `done` counts steps.
    Install,
    /// Files are read and stored; `done` counts bytes.
    Read,
    /// The stored files are synced to disk.
    Sync,
}

/// The progress of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The current phase.
    pub phase: Phase,
    /// How much of it is done.
    pub done: u64,
    /// How much there is to do, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// What is being worked on, for people to read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// What is worth a word about an import that has succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remarks {
    /// Damaged objects that it has replaced.
    pub restored_objects: u64,
    /// Device nodes of the source that are not in the base.
    pub left_out_devices: u64,
}

/// A line of holm-import's output.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Progress(Progress),
    Remarks(Remarks),
}

/// Imports the base `name` from `source`. Calls `progress` a few times a second.
///
/// The base becomes visible when all of it is on disk.
pub fn import(
    pool: &Pool,
    name: &Name,
    source: &Source,
    options: &ImportOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Base, Remarks), Error> {
    source.check()?;
    clean(pool)?;
    if is_there(&pool.base_dir(name))? {
        return Err(Error::Exists { name: name.clone() });
    }
    // holm-import locks them so itself, but would wait for a collection without end.
    let objects = directory::share_objects(pool)?;
    let mut remarks = Remarks::default();
    let outcome = program::run(command(pool, name, source, options)?, |line| {
        match serde_json::from_str(line) {
            Ok(Line::Progress(step)) => progress(step),
            Ok(Line::Remarks(made)) => remarks = made,
            Err(_) => {}
        }
    })?;
    drop(objects);
    let Err(message) = outcome else { return Ok((load(pool, name)?, remarks)) };
    // It may have stored objects before it failed, which a killed import does not remove.
    gc::request(pool)?;
    clean(pool)?;
    Err(Error::Import { name: name.clone(), message })
}

fn command(
    pool: &Pool,
    name: &Name,
    source: &Source,
    options: &ImportOptions,
) -> Result<Command, Error> {
    let mut command = program::command(pool)?;
    command.arg("--name").arg(name.as_str());
    if let Some(mirror) = &options.mirror {
        command.arg("--mirror").arg(mirror);
    }
    command.arg("--").arg(source.to_arg());
    let stdin = if *source == Source::Stdin { Stdio::inherit() } else { Stdio::null() };
    command.stdin(stdin);
    Ok(command)
}
