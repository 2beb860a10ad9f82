use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::Error;
use super::limit::Limits;
use crate::Failed;
use crate::failed::is_there;
use crate::pool;
use crate::rootfs::{UPPER, Upper, WORK};

/// The mark of a layer in which the guest has not run yet, though it has in another.
pub(super) const NEW: &str = "new";

/// A guest's private layer.
#[derive(Clone, Debug)]
pub enum Layer {
    /// In this directory. It outlives the guest's runs.
    Disk(PathBuf),
    /// In this directory, and the base's files with it: the root is no overlay.
    Plain(PathBuf),
    /// In this disk image. It outlives the guest's runs too.
    Image(PathBuf),
    /// There is none: the root is read-only.
    ReadOnly,
    /// In memory. It is gone when the guest ends.
    Memory(Limits),
}

impl Layer {
    /// Makes an empty layer in `guest_dir`, the directory of a guest that is being created.
    pub fn create_empty(guest_dir: &Path) -> Result<(), Failed> {
        let disk = directory(guest_dir);
        // The mode of the upper directory is what the guest sees on /.
        for (path, mode) in
            [(disk.clone(), 0o755), (disk.join(UPPER), 0o755), (disk.join(WORK), 0o700)]
        {
            fs::DirBuilder::new()
                .mode(mode)
                .create(&path)
                // The mode must not depend on the caller's umask.
                .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)))
                .map_err(|error| Failed::new("make the directory", &path, error))?;
        }
        pool::sync(&disk)
    }

    /// Marks the layer in the directory `disk` as one in which the guest has not run yet, so that
    /// its identity is written into it at the next start. The mark comes and goes with the layer.
    pub fn mark_new(disk: &Path) -> Result<(), Failed> {
        let path = disk.join(NEW);
        fs::write(&path, "").map_err(|error| Failed::new("write", &path, error))?;
        pool::sync(disk)
    }

    /// Whether it is so marked.
    pub fn is_new(&self) -> Result<bool, Failed> {
        match self {
            Self::Disk(disk) | Self::Plain(disk) => is_there(&disk.join(NEW)),
            Self::Image(image) => is_there(&directory_of(image).join(NEW)),
            Self::Memory(_) | Self::ReadOnly => Ok(true),
        }
    }

    /// Removes the mark.
    pub fn mark_started(&self) {
        let disk = match self {
            Self::Disk(disk) | Self::Plain(disk) => disk,
            Self::Image(image) => &directory_of(image),
            Self::Memory(_) | Self::ReadOnly => return,
        };
        let _ = fs::remove_file(disk.join(NEW));
    }

    /// The guest's own metadata image, which it has since it was unified. An error if that was made
    /// for another base than the one of this identity ([`crate::store::Base::identity`]): the image
    /// says what differs from it.
    pub fn image(&self, base: &str) -> Result<Option<PathBuf>, Error> {
        let Self::Disk(disk) = self else { return Ok(None) };
        let image = disk.join("image");
        if !is_there(&image)? {
            return Ok(None);
        }
        let path = disk.join("base");
        let text = fs::read_to_string(&path).map_err(|error| Failed::new("read", &path, error))?;
        if text.trim() == base {
            return Ok(Some(image));
        }
        let name = |identity: &str| identity.split(' ').next().unwrap_or_default().to_owned();
        Err(Error::OtherBase { made_for: name(&text), base: name(base) })
    }

    /// Whether it outlives the guest's runs.
    pub fn is_persistent(&self) -> bool {
        !matches!(self, Self::Memory(_) | Self::ReadOnly)
    }

    /// Whether the guest can write to it.
    pub fn is_writable(&self) -> bool {
        !matches!(self, Self::ReadOnly)
    }

    /// The upper layer of the guest's overlay.
    pub fn upper(&self) -> Upper<'_> {
        match self {
            Self::Disk(disk) => Upper::Disk(disk),
            Self::Plain(disk) => Upper::Plain(disk),
            Self::Image(image) => Upper::Image(image),
            // What Holm writes before it becomes read-only.
            Self::ReadOnly => Upper::Memory { size: None, inodes: None },
            Self::Memory(Limits { size, inodes }) => Upper::Memory { size: *size, inodes: *inodes },
        }
    }
}

fn directory(guest_dir: &Path) -> PathBuf {
    guest_dir.join("disk")
}

/// The directory beside an image, which has no files of the guest.
fn directory_of(image: &Path) -> PathBuf {
    image.with_file_name("disk")
}
