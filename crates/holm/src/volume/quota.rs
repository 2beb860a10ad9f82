//! Project quota of volumes.

use std::fs;
use std::path::Path;

use super::{Error, Result};
use crate::disk::limit::{self, Backend, Limits};
use crate::failed::is_there;
use crate::pool::Pool;

/// Where files are made anew that can be given no project id, below a volume's directory.
pub(super) const WORK: &str = "work";

/// Whether the root's filesystem enforces project quota.
pub(super) fn has_quota(pool: &Pool) -> Result<bool> {
    Ok(Backend::of(pool.root())? == Backend::Project)
}

/// Bounds what is in the volume with this directory. Nobody else changes it, unless all of it has
/// the project id already.
pub(super) fn apply(dir: &Path, project: u32, size: Option<u64>) -> Result<()> {
    let (work, data) = (dir.join(WORK), dir.join("data"));
    if !is_there(&work)? {
        fs::create_dir(&work).map_err(|error| Error::io("make the directory", &work, error))?;
    }
    Ok(limit::apply(&[&work, &data], project, Limits { size, inodes: None })?)
}

/// Whether all of the volume with this directory has the project id.
pub(super) fn is_applied(dir: &Path, project: u32) -> Result<bool> {
    Ok(limit::is_applied(&dir.join("data"), project)?)
}

/// What the volume with this project id takes, in bytes.
pub(super) fn used(dir: &Path, project: u32) -> Result<u64> {
    Ok(limit::used(&dir.join("data"), project)?)
}

/// Gives a project id back.
pub(super) fn lift(pool: &Pool, project: u32) -> Result<()> {
    Ok(limit::lift(pool.root(), project)?)
}
