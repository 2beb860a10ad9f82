use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::error::{Error, Result};
use crate::failed::unless_gone;
use crate::process::{Waiting, lock};

/// A lock, which is released when it is dropped or the process ends.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Locks a directory.
    pub(crate) fn directory(path: &Path, waiting: Waiting<'_>) -> Result<Self> {
        Self::take(path, File::open(path), FlockOperation::LockExclusive, waiting)
    }

    /// Locks a directory shared.
    pub(crate) fn shared(path: &Path, waiting: Waiting<'_>) -> Result<Self> {
        Self::take(path, File::open(path), FlockOperation::LockShared, waiting)
    }

    /// Makes a shared lock exclusive. Returns whether that was possible, which it is not while
    /// others share it.
    pub(super) fn try_exclusive(&self) -> rustix::io::Result<bool> {
        match flock(&self.0, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Locks a file, creating it if necessary.
    pub(super) fn file(path: &Path, waiting: Waiting<'_>) -> Result<Self> {
        let options =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).clone();
        Self::take(path, options.open(path), FlockOperation::LockExclusive, waiting)
    }

    /// Locks a directory unless another process has it locked.
    pub(super) fn try_directory(path: &Path) -> Result<Option<Self>> {
        let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(Error::io("lock", path, errno.into())),
        }
    }

    /// Whether the locked directory is still at this path. It may have been renamed while this
    /// process waited for the lock.
    pub(crate) fn is_of(&self, path: &Path) -> Result<bool> {
        let fail = |error| Error::io("look at", path, error);
        let identity = |data: &std::fs::Metadata| (data.dev(), data.ino());
        let locked = self.0.metadata().map_err(fail)?;
        let there = unless_gone(std::fs::metadata(path)).map_err(fail)?;
        Ok(there.is_some_and(|there| identity(&there) == identity(&locked)))
    }

    fn take(
        path: &Path,
        file: std::io::Result<File>,
        how: FlockOperation,
        waiting: Waiting<'_>,
    ) -> Result<Self> {
        let file = file.map_err(|error| Error::io("open", path, error))?;
        lock(&file, how, waiting).map_err(|error| Error::io("lock", path, error))?;
        Ok(Self(file))
    }
}

impl AsFd for Lock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
