//! Loading and listing volumes.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::meta::{self, Meta};
use super::{Error, Result, image, quota};
use crate::config::{BindMount, VolumeMount, nearest};
use crate::failed::is_directory;
use crate::pool::{self, Name, Pool};
use crate::rootfs::VolumeMounts;

/// A volume.
#[derive(Clone, Debug)]
pub struct Volume {
    /// Its name.
    pub name: Name,
    /// What guests see.
    pub files: Files,
    /// Its volume.toml.
    pub meta: Meta,
}

/// Where a volume's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Files {
    /// In this directory.
    Directory(PathBuf),
    /// In this disk image.
    Image(PathBuf),
}

impl Volume {
    /// What it takes on the disk, in bytes, if that is known without reading all its directories.
    pub fn used(&self, pool: &Pool) -> Result<Option<u64>> {
        match (&self.files, self.meta.project) {
            (Files::Image(image), _) => {
                let found = fs::metadata(image).map_err(|e| Error::io("look at", image, e))?;
                Ok(Some(found.blocks() * 512))
            }
            (Files::Directory(_), Some(project)) if quota::has_quota(pool)? => {
                quota::used(&pool.volume_dir(&self.name), project).map(Some)
            }
            (Files::Directory(_), _) => Ok(None),
        }
    }
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
    let files = match image::find(&dir)? {
        Some(image) => Files::Image(image),
        None if is_directory(&data)? => Files::Directory(data),
        None => return Err(damaged("it has no data".to_owned())),
    };
    Ok(Volume { name: name.clone(), files, meta })
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

/// The mounts of a guest's volumes, each after those that its target lies in.
pub fn mounts(pool: &Pool, wanted: &[VolumeMount]) -> Result<VolumeMounts> {
    let mut all = VolumeMounts::default();
    for volume in wanted {
        let dir = pool.volumes_dir().join(&volume.name);
        let top = match image::find(&dir)? {
            Some(image) => {
                let on = image::mountpoint(&dir);
                let image = (image, on.clone());
                // One may be at several targets.
                if !all.images.contains(&image) {
                    all.images.push(image);
                }
                on
            }
            None => dir,
        };
        let source = top.join("data");
        let (target, read_only) = (volume.target.clone(), volume.read_only);
        all.binds.push(BindMount { source, target, read_only });
    }
    all.binds.sort_by_key(|bind| bind.target.components().count());
    Ok(all)
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
