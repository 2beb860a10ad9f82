//! Staging directories, `bases/.new-PID-N`, in which imports build bases.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, RenameFlags, mkdirat, renameat_with};
use rustix::io::{Errno, FdFlags, fcntl_setfd};

use super::directory;
use super::error::Error;
use crate::pool::{Name, Pool, remove_tree};

/// Prefix of a base that is being imported.
pub(super) const NEW: &str = ".new-";
/// Prefix of a base that is being removed.
pub(super) const OLD: &str = ".old-";

/// A staging directory. It is removed with its contents when this is dropped. If the process is
/// killed, the next command on bases finds it unlocked and removes it.
#[derive(Debug)]
pub struct Staging {
    dir: PathBuf,
    /// Children may inherit this lock, so that the directory stays while one of them writes to it.
    lock: File,
    bases: PathBuf,
}

impl Staging {
    /// Makes an empty staging directory and locks it.
    pub fn new(pool: &Pool) -> Result<Self, Error> {
        let bases = directory::bases(pool);
        // Until the new directory is locked itself, `clean` could take it for a stale one.
        let _all = directory::lock_all(pool)?;
        let dir = directory::unused(&bases, NEW)?;
        mkdirat(rustix::fs::CWD, &dir, Mode::from_raw_mode(0o700))
            .map_err(|e| Error::io("create", &dir)(e.into()))?;
        let lock = directory::lock(&dir)?;
        Ok(Self { dir, lock, bases })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Lets children that are started from now on inherit the lock.
    pub fn share_lock(&self) -> Result<(), Error> {
        fcntl_setfd(&self.lock, FdFlags::empty())
            .map_err(|e| Error::io("lock", &self.dir)(e.into()))
    }

    /// Turns the directory into the base `name`, atomically and durably.
    pub fn commit(mut self, name: &Name) -> Result<(), Error> {
        let to = self.bases.join(name.as_str());
        directory::sync(&self.dir)?;
        match renameat_with(
            rustix::fs::CWD,
            &self.dir,
            rustix::fs::CWD,
            &to,
            RenameFlags::NOREPLACE,
        ) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(Error::Exists { name: name.clone() }),
            Err(e) => return Err(Error::io("create", &to)(e.into())),
        }
        self.dir = PathBuf::new();
        directory::sync(&self.bases)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.dir.as_os_str().is_empty() {
            // If this fails, the next `clean` removes it.
            let _ = remove_tree(&self.dir);
        }
    }
}

/// Renames the directory of a base that is being removed, so that it is no longer a base. The
/// caller has locked `bases`.
pub(super) fn retire(bases: &Path, dir: &Path) -> Result<PathBuf, Error> {
    let old = directory::unused(bases, OLD)?;
    fs::rename(dir, &old).map_err(Error::io("remove", dir))?;
    directory::sync(bases)?;
    Ok(old)
}
