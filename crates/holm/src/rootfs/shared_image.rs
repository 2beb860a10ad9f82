//! Mounts of images from which those of guests are cloned, so that all guests of a base have one
//! superblock of its image: its inodes are in memory once.
//!
//! ```text
//! /run/holm/N/images/
//!   DEVICE-INODE        the image with this identity, mounted while a guest uses it
//!   DEVICE-INODE.lock   locked shared by the monitors of those guests
//! ```
//!
//! The end of a guest leaves the two without the mount: to make and remove a directory in a tmpfs
//! takes longer than to mount the image. Commands that look at all guests remove what is not in
//! use.
//!
//! An image cannot be removed from its filesystem while it is mounted, so no other has its identity
//! meanwhile.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, OFlags, flock, fstatfs};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MoveMountFlags, UnmountFlags, move_mount, unmount};

use super::{Error, Result, clone_tree, mount_image};
use crate::failed::{make_directories, unless_gone};
use crate::process::{self, Waiting};

/// `EROFS_SUPER_MAGIC_V1` (linux/magic.h).
const EROFS: u64 = 0xE0F5_E1E2;

const LOCK: &str = ".lock";

/// The host executes nothing in an image. What holds in the guest is said of its overlay.
const RESTRICTED: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY
    .union(MountAttrFlags::MOUNT_ATTR_NOSUID)
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// An image that stays mounted while this lives, and while a process has its lock.
#[derive(Debug)]
pub struct SharedImage {
    lock: File,
    images: PathBuf,
    key: String,
}

impl SharedImage {
    /// Keeps the image mounted, once it is.
    pub(crate) fn of(images: &Path, image: &Path, waiting: Waiting<'_>) -> Result<Self> {
        let found = fs::metadata(image).map_err(|error| Error::io("look at", image, error))?;
        Self::hold(images, &format!("{}-{}", found.dev(), found.ino()), waiting)
    }

    /// Keeps the image with this key mounted, once it is.
    pub(crate) fn hold(images: &Path, key: &str, waiting: Waiting<'_>) -> Result<Self> {
        let path = images.join(format!("{key}{LOCK}"));
        let fail = |error| Error::io("lock", &path, error);
        loop {
            let lock = open_lock(images, &path).map_err(fail)?;
            process::lock(&lock, FlockOperation::LockShared, waiting).map_err(fail)?;
            // Whoever removed what was not in use while this waited has removed the file.
            if lock.metadata().map_err(fail)?.nlink() > 0 {
                return Ok(Self { lock, images: images.to_owned(), key: key.to_owned() });
            }
        }
    }

    /// What tells the image from others that are mounted.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// A detached copy of the image's mount, which is made unless it is there. The calling process
    /// is in the host's mount namespace.
    pub(crate) fn copy_mount(&self, image: &Path, waiting: Waiting<'_>) -> Result<OwnedFd> {
        match self.copy()? {
            Some(copy) => Ok(copy),
            None => self.mount_once(image, waiting),
        }
    }

    /// The lock, for a process that keeps it longer.
    pub fn lock(&self) -> BorrowedFd<'_> {
        self.lock.as_fd()
    }

    fn at(&self) -> PathBuf {
        self.images.join(&self.key)
    }

    /// A copy of the mount; `None` if there is only the directory, or not even that.
    fn copy(&self) -> Result<Option<OwnedFd>> {
        let at = self.at();
        let copy = match clone_tree(&at, None) {
            Err(Error::Failed(failed)) if failed.source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            other => other?,
        };
        let found = fstatfs(&copy).map_err(|errno| Error::io("look at", at, errno))?;
        Ok((u64::try_from(found.f_type) == Ok(EROFS)).then_some(copy))
    }

    /// Two starts at once must not make two superblocks.
    fn mount_once(&self, image: &Path, waiting: Waiting<'_>) -> Result<OwnedFd> {
        let at = self.at();
        let fail = |error| Error::io("mount on", &at, error);
        let all = File::open(&self.images).map_err(fail)?;
        process::lock(&all, FlockOperation::LockExclusive, waiting).map_err(fail)?;
        if let Some(copy) = self.copy()? {
            return Ok(copy);
        }
        make_directories(&at, 0o700).map_err(fail)?;
        let empty = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        let mounted = mount_image(image, RESTRICTED)?;
        move_mount(mounted, "", CWD, &at, empty).map_err(|errno| fail(errno.into()))?;
        self.copy()?.ok_or_else(|| fail(Errno::NOENT.into()))
    }
}

fn open_lock(images: &Path, path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600).custom_flags(flags);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_directories(images, 0o700)?;
            options.open(path)
        }
        other => other,
    }
}

/// Unmounts the image with this key, unless a guest uses it.
pub fn unmount_unused(images: &Path, key: &str) -> Result<()> {
    let fail = |error| Error::io("unmount", images.join(key), error);
    let Some(_lock) = lock_unused(images, key).map_err(fail)? else { return Ok(()) };
    unmount_at(&images.join(key)).map_err(fail)
}

/// Unmounts all images that no guest uses, and removes where they were mounted.
pub fn remove_all_unused(images: &Path) -> Result<()> {
    let fail = |error| Error::io("read", images, error);
    let Some(entries) = unless_gone(fs::read_dir(images)).map_err(fail)? else { return Ok(()) };
    for entry in entries {
        let name = entry.map_err(fail)?.file_name();
        if let Some(key) = name.to_str().and_then(|name| name.strip_suffix(LOCK)) {
            remove_unused(images, key).map_err(|e| Error::io("remove", images.join(key), e))?;
        }
    }
    Ok(())
}

fn remove_unused(images: &Path, key: &str) -> io::Result<()> {
    let Some(_lock) = lock_unused(images, key)? else { return Ok(()) };
    let mount = images.join(key);
    unmount_at(&mount)?;
    unless_gone(fs::remove_dir(&mount))?;
    unless_gone(fs::remove_file(images.join(format!("{key}{LOCK}")))).map(drop)
}

/// The lock of an image that no guest uses; `None` if one does, or nothing is left of it.
fn lock_unused(images: &Path, key: &str) -> io::Result<Option<File>> {
    let lock = unless_gone(File::open(images.join(format!("{key}{LOCK}"))))?;
    let Some(lock) = lock else { return Ok(None) };
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Ok(None),
        other => other?,
    }
    // Another command has removed it since it was opened: a guest may use a new one.
    Ok((lock.metadata()?.nlink() > 0).then_some(lock))
}

fn unmount_at(mount: &Path) -> io::Result<()> {
    match unmount(mount, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        // Nothing is mounted there, or nothing is there.
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
