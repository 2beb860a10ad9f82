//! Volumes with a size limit where the filesystem of the Holm root has no project quota: in a disk
//! image each.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::syncfs;
use rustix::process::chdir;

use super::copy::{copy_directory, directory};
use super::layout::new_dir;
use super::quota::WORK;
use super::{Error, Result};
use crate::disk::limit::{Limits, image};
use crate::failed::is_there;
use crate::pool::{Lock, Name, Pool, remove_tree};
use crate::process::{HostNamespaces, unshare_mounts};
use crate::rootfs::mount_disk_image;

pub use image::Fitted;

/// The image, below a volume's directory.
const IMAGE: &str = "volume.img";
/// Where it is mounted, in mount namespaces that are not the host's.
const MOUNT: &str = "mount";

/// The image of the volume with this directory, if it is in one.
pub(super) fn find(dir: &Path) -> Result<Option<PathBuf>> {
    let image = dir.join(IMAGE);
    Ok(is_there(&image)?.then_some(image))
}

/// Where it is to be mounted.
pub(super) fn mountpoint(dir: &Path) -> PathBuf {
    dir.join(MOUNT)
}

/// Makes an image of `size` bytes in `dir`, which nobody else uses, with data that `fill` makes.
pub(super) fn make(
    pool: &Pool,
    dir: &Path,
    size: u64,
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let image = dir.join(IMAGE);
    image::make(pool, &image, limits(size))?;
    let mount = mountpoint(dir);
    directory(&mount, 0o700)?;
    let host = HostNamespaces::save()?;
    unshare_mounts()?;
    let filled: Result<()> = (|| {
        mount_disk_image(&image, &mount)?;
        fill(&mount.join("data"))?;
        let whole = fs::File::open(&mount).map_err(|error| Error::io("open", &mount, error))?;
        syncfs(&whole).map_err(|errno| Error::io("sync", &mount, errno))
    })();
    // Out of the image, or it would stay mounted.
    let _ = chdir("/");
    host.restore()?;
    filled
}

/// Puts a volume that is a directory, and that no guest has, into an image.
pub(super) fn convert(pool: &Pool, volume: &Name, size: u64) -> Result<()> {
    let dir = pool.volume_dir(volume);
    pool.make_tmp()?;
    let new = new_dir(pool, volume);
    let converted: Result<()> = (|| {
        directory(&new, 0o700)?;
        make(pool, &new, size, |data| copy_directory(volume, &dir.join("data"), data))?;
        if !is_there(&mountpoint(&dir))? {
            directory(&mountpoint(&dir), 0o700)?;
        }
        let image = dir.join(IMAGE);
        // From here on the volume is in the image.
        fs::rename(new.join(IMAGE), &image).map_err(|e| Error::io("move to", &image, e))?;
        Ok(crate::pool::sync(&dir)?)
    })();
    // If this fails, the next command that makes something removes it.
    let _ = remove_tree(&new);
    converted?;
    crate::step::done("volume-converted");
    clean(&dir)
}

/// Prepares an image for a start: it is checked if it was not unmounted well, and gets its size, if
/// no guest has it.
pub(super) fn ready(pool: &Pool, volume: &Name, size: Option<u64>) -> Result<()> {
    let dir = pool.volume_dir(volume);
    let what = format_args!("the disk image of volume {volume}");
    // Two starts at once: one of them checks it.
    let _lock = Lock::directory(&mountpoint(&dir), pool.waiting(&what))?;
    clean(&dir)?;
    let limits = Limits { size, inodes: None };
    image::fit(pool, &dir.join(IMAGE), limits)?;
    Ok(())
}

/// Grows an image that guests may have mounted. What can only be done when none has is said.
pub(super) fn change(dir: &Path, size: u64) -> Result<Fitted> {
    Ok(image::change(&dir.join(IMAGE), limits(size))?)
}

/// Gives an image that no guest has its size.
pub(super) fn fit(pool: &Pool, dir: &Path, size: u64) -> Result<Fitted> {
    Ok(image::fit(pool, &dir.join(IMAGE), limits(size))?)
}

/// Removes the directory that a volume was before it got into an image: the command that did that
/// may have been killed.
fn clean(dir: &Path) -> Result<()> {
    let (work, data) = (dir.join(WORK), dir.join("data"));
    for old in [data, work] {
        if is_there(&old)? {
            remove_tree(&old)?;
        }
    }
    Ok(())
}

fn limits(size: u64) -> Limits {
    Limits { size: Some(size), inodes: None }
}
