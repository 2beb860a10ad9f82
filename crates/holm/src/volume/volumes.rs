//! Loading and listing volumes.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use super::meta::{self, Meta};
use super::{Error, Result};
use crate::config::{BindMount, VolumeMount, nearest};
use crate::failed::is_directory;
use crate::pool::{self, Name, Pool};

/// A volume.
#[derive(Clone, Debug)]
pub struct Volume {
    /// Its name.
    pub name: Name,
    /// The directory that guests see.
    pub data: PathBuf,
    /// Its volume.toml.
    pub meta: Meta,
}

/// Loads the volume `name`.
pub fn load(pool: &Pool, name: &Name) -> Result<Volume> {
    let dir = pool.volume_dir(name);
    let path = dir.join("volume.toml");
    let damaged = |reason: String| Error::Damaged { name: name.clone(), reason };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound && is_directory(&dir)? => {
            return Err(damaged("it has no volume.toml".to_owned()));
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(not_found(pool, name)),
        Err(e) => return Err(Error::io("read", &path, e)),
    };
    let meta =
        meta::parse(&text).map_err(|error| damaged(format!("volume.toml: {}", error.message())))?;
    let data = dir.join("data");
    if !is_directory(&data)? {
        return Err(damaged("it has no data".to_owned()));
    }
    Ok(Volume { name: name.clone(), data, meta })
}

/// All volumes, sorted by name; of those that are damaged, the error.
pub fn list(pool: &Pool) -> Result<Vec<(Name, Result<Volume>)>> {
    let all = pool.volumes()?.into_iter().map(|name| {
        let volume = load(pool, &name);
        (name, volume)
    });
    // One may have been removed since the directory was read.
    Ok(all.filter(|(_, volume)| !matches!(volume, Err(Error::NotFound { .. }))).collect())
}

/// What each volume takes on the disk, in bytes.
pub fn used(pool: &Pool, names: &[Name]) -> Result<HashMap<Name, u64>> {
    let dirs: Vec<PathBuf> = names.iter().map(|name| pool.volume_dir(name)).collect();
    let sizes = pool::disk_usage(&dirs)?;
    let of = |name: &Name| Some((name.clone(), *sizes.get(&pool.volume_dir(name))?));
    Ok(names.iter().filter_map(of).collect())
}

/// The binds of a guest's volumes, each after those that its target lies in.
pub fn mounts(pool: &Pool, wanted: &[VolumeMount]) -> Vec<BindMount> {
    let bind = |volume: &VolumeMount| BindMount {
        source: pool.volumes_dir().join(&volume.name).join("data"),
        target: volume.target.clone(),
        read_only: volume.read_only,
    };
    let mut binds: Vec<BindMount> = wanted.iter().map(bind).collect();
    binds.sort_by_key(|bind| bind.target.components().count());
    binds
}

fn not_found(pool: &Pool, name: &Name) -> Error {
    let names = match pool.volumes() {
        Ok(names) => names,
        Err(error) => return Error::Pool(error),
    };
    let near = nearest(name.as_str(), names.iter().map(Name::as_str));
    let near = near.map_or(String::new(), |near| format!(" (did you mean {near}?)"));
    Error::NotFound { name: name.clone(), near }
}
