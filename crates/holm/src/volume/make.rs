//! Making volumes.

use std::fs;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with, syncfs};
use rustix::io::Errno;

use super::copy::{copy_of, directory};
use super::layout::new_dir;
use super::pin::{Pin, pin};
use super::{Error, Meta, Result, Volume, image, limit, load, quota};
use crate::config::VolumeMount;
use crate::failed::is_there;
use crate::pool::{self, Name, Pool};
use crate::record::now;
use crate::rootfs::Layers;
use crate::step;

/// Makes an empty volume, which belongs to guest root.
pub fn create(pool: &Pool, name: &Name, size: Option<u64>) -> Result<Volume> {
    let _lock = pool.lock("volumes")?;
    if is_there(&pool.volume_dir(name))? {
        return Err(Error::Exists(name.clone()));
    }
    let project = limit::project(pool, name, size)?;
    let meta = Meta { created: now(), size, project, ..Meta::default() };
    make(pool, name, &meta, |data| directory(data, 0o755))
}

/// Pins the volumes of a guest that is being started. Those that do not exist are made, each with
/// what the guest, whose root is made of `layers`, has at its target.
pub fn make_missing(
    pool: &Pool,
    guest: &Name,
    wanted: &[VolumeMount],
    layers: Layers<'_>,
) -> Result<Vec<Pin>> {
    let mut pins = Vec::with_capacity(wanted.len());
    for mount in wanted {
        let name = Name::new(&mount.name)?;
        let (volume, pin) = match pin(pool, &name) {
            Err(Error::NotFound { .. }) => {
                make_of(pool, guest, &name, mount, layers)?;
                pin(pool, &name)?
            }
            found => found?,
        };
        limit::enforce(pool, &volume, mount.size)?;
        pins.push(pin);
    }
    Ok(pins)
}

fn make_of(
    pool: &Pool,
    guest: &Name,
    name: &Name,
    mount: &VolumeMount,
    layers: Layers<'_>,
) -> Result<()> {
    let _lock = pool.lock("volumes")?;
    // Another guest may have made it meanwhile.
    if is_there(&pool.volume_dir(name))? {
        return Ok(());
    }
    let meta = Meta {
        created: now(),
        size: mount.size,
        project: limit::project(pool, name, mount.size)?,
        guest: Some(guest.to_string()),
        target: Some(mount.target.display().to_string()),
    };
    let fill = |data: &Path| {
        if !copy_of(pool, name, &mount.target, layers, data)? {
            directory(data, 0o755)?;
        }
        step::done("volume-copied");
        Ok(())
    };
    make(pool, name, &meta, fill).map(drop)
}

/// Makes a volume whose data `fill` makes. It appears whole or not at all.
fn make(
    pool: &Pool,
    name: &Name,
    meta: &Meta,
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<Volume> {
    pool.make_tmp()?;
    pool.clean_tmp();
    let new = new_dir(pool, name);
    let to = pool.volume_dir(name);
    let made = (|| {
        directory(&new, 0o700)?;
        match (meta.project, meta.size) {
            (Some(project), size) => {
                fill(&new.join("data"))?;
                quota::apply(&new, project, size)?;
            }
            (None, Some(size)) => image::make(pool, &new, size, fill)?,
            (None, None) => fill(&new.join("data"))?,
        }
        pool.write(&new.join("volume.toml"), &meta.to_text())?;
        // What was copied must not be lost to a power failure that the volume itself survives.
        let whole = fs::File::open(&new).map_err(|error| Error::io("open", &new, error))?;
        syncfs(&whole).map_err(|errno| Error::io("sync", &new, errno))?;
        match renameat_with(CWD, &new, CWD, &to, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => Err(Error::Exists(name.clone())),
            renamed => renamed.map_err(|errno| Error::io("move to", &to, errno)),
        }
    })();
    if let Err(error) = made {
        // If this fails, the next command that makes something removes it.
        let _ = pool::remove_tree(&new);
        return Err(error);
    }
    pool::sync(&pool.volumes_dir())?;
    step::done("volume-made");
    load(pool, name)
}
