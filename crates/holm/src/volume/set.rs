//! Changing the size limit of a volume.

use super::remove::require_unused;
use super::{Error, Files, Fitted, Result, Volume, image, limit, load, quota};
use crate::pool::{Name, Pool};
use crate::step;

/// Limits a volume to `size` bytes, or lifts its limit. Guests may run with it, unless it has never
/// had one: then all its files get a project id, or are put into a disk image.
pub fn set(pool: &Pool, name: &Name, size: Option<u64>) -> Result<Fitted> {
    let _lock = pool.lock("volumes")?;
    let volume = load(pool, name)?;
    match &volume.files {
        Files::Image(_) => {
            set_image(pool, volume, size.ok_or(Error::ImageKeepsSize(name.clone()))?)
        }
        Files::Directory(_) => set_directory(pool, volume, size).map(|()| Fitted::Now),
    }
}

fn set_image(pool: &Pool, mut volume: Volume, size: u64) -> Result<Fitted> {
    let dir = pool.volume_dir(&volume.name);
    let mut fitted = image::change(&dir, size)?;
    if fitted == Fitted::AtNextStart {
        match require_unused(pool, &volume.name) {
            Ok(_unused) => fitted = image::fit(pool, &dir, size)?,
            Err(Error::InUse { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    step::done("volume-limited");
    volume.meta.size = Some(size);
    pool.write(&dir.join("volume.toml"), &volume.meta.to_text())?;
    Ok(fitted)
}

fn set_directory(pool: &Pool, mut volume: Volume, size: Option<u64>) -> Result<()> {
    let (name, dir) = (volume.name.clone(), pool.volume_dir(&volume.name));
    let has_quota = quota::has_quota(pool)?;
    let applied = match volume.meta.project.filter(|_| has_quota) {
        Some(project) => quota::is_applied(&dir, project)?.then_some(project),
        None => None,
    };
    volume.meta.size = size;
    let write = |volume: &Volume| pool.write(&dir.join("volume.toml"), &volume.meta.to_text());
    match (applied, size) {
        (Some(project), _) => {
            write(&volume)?;
            step::done("volume-size-written");
            quota::apply(&dir, project, size)?;
        }
        (None, Some(_)) if has_quota => {
            let project = limit::claim(pool, &name)?;
            let _unused = require_unused(pool, &name)?;
            quota::apply(&dir, project, size)?;
            step::done("volume-limited");
            volume.meta.project = Some(project);
            write(&volume)?;
        }
        (None, Some(bytes)) => {
            let _unused = require_unused(pool, &name)?;
            image::convert(pool, &name, bytes)?;
            step::done("volume-limited");
            volume.meta.project = None;
            write(&volume)?;
        }
        (None, None) => write(&volume)?,
    }
    Ok(())
}
