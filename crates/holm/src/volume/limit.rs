//! The size limit of a volume, by project quota.
//!
//! A volume's project id is one of those below the id ranges of the root's guests: N·2^26 + 1 to
//! N·2^26 + 65535 for instance number N, where there is no context id. It is in volume.toml once
//! all files of the volume have it.

use std::fs;
use std::path::Path;

use super::{Error, Result, Volume, list};
use crate::disk::limit::{self, Backend, Limits};
use crate::failed::is_there;
use crate::pool::{Name, Pool};
use crate::record::{Ids, RANGE};

/// Where files are made anew that can be given no project id, below a volume's directory.
const WORK: &str = "work";

/// Whether sizes can be limited.
pub(super) fn is_possible(pool: &Pool) -> Result<bool> {
    Ok(Backend::of(pool.root())? == Backend::Project)
}

/// A project id for a volume. The caller holds `lock/volumes` until volume.toml has it.
pub(super) fn claim(pool: &Pool, volume: &Name) -> Result<u32> {
    if !is_possible(pool)? {
        return Err(Error::SizeUnsupported(volume.clone()));
    }
    let mut taken = Vec::new();
    for (_, volume) in list(pool)? {
        // The files of a damaged one are there all the same.
        taken.extend(volume.ok().and_then(|volume| volume.meta.project));
    }
    let first = Ids::new(pool.instance(), 0, false).base;
    for id in (first + 1..first + RANGE).filter(|id| !taken.contains(id)) {
        match limit::claim(pool.root(), id) {
            // Of a volume that is being removed, or of a command that was killed.
            Err(crate::disk::Error::ProjectTaken { .. }) => {}
            claimed => return Ok(claimed.map(|()| id)?),
        }
    }
    Err(Error::SizeUnsupported(volume.clone()))
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

/// Limits a volume at the start of a guest that wants it to have `wanted`. What volume.toml says
/// wins; that a limit is not enforced is said.
pub(super) fn enforce(pool: &Pool, volume: &Volume, wanted: Option<u64>) -> Result<()> {
    let (name, dir) = (&volume.name, pool.volume_dir(&volume.name));
    match (volume.meta.project, volume.meta.size.or(wanted)) {
        // A change of the limit may have been killed.
        (Some(project), _) => apply(&dir, project, volume.meta.size)?,
        (None, Some(size)) => pool.report_repair(&format!(
            "volume {name}: its size limit is not enforced; where the filesystem has project \
             quota, it will be after `holm volume set {name} --size {size}`"
        )),
        (None, None) => {}
    }
    Ok(())
}

/// Gives a project id back.
pub(super) fn lift(pool: &Pool, project: u32) -> Result<()> {
    Ok(limit::lift(pool.root(), project)?)
}
