//! The folders `bases/.new-XXXX`, in which imports are built, and what is left of killed ones.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, RenameFlags, mkdirat, renameat_with};
use rustix::io::{Errno, FdFlags, fcntl_setfd};

use super::error::Error;
use super::{directory, gc};
use crate::pool::{Name, Pool, remove_tree};

/// Prefix of an import that goes on.
const NEW: &str = ".new-";
/// Prefix of a base that is being removed.
const OLD: &str = ".old-";

/// A folder to build a base in. It and all in it goes when this is dropped; if the process is
/// killed, the next command that calls [`clean`] sees that nobody locks it, and removes it.
#[derive(Debug)]
pub struct Stage {
    dir: PathBuf,
    /// Locked; also inherited by children, so that the folder stays as long as one writes to it.
    lock: File,
    bases: PathBuf,
}

impl Stage {
    /// A new, empty, locked folder.
    pub fn new(pool: &Pool) -> Result<Self, Error> {
        let bases = directory::bases(pool);
        // Held until the new folder is locked itself, else `clean` could take it for a stale one.
        let _all = directory::lock(&bases, FlockOperation::LockExclusive)?;
        let dir = directory::unused(&bases, NEW)?;
        mkdirat(rustix::fs::CWD, &dir, Mode::from_raw_mode(0o700))
            .map_err(|e| Error::io("create", &dir)(e.into()))?;
        let lock = directory::lock(&dir, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { dir, lock, bases })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Lets children started from now on keep the folder locked.
    pub fn share_lock(&self) -> Result<(), Error> {
        fcntl_setfd(&self.lock, FdFlags::empty())
            .map_err(|e| Error::io("lock", &self.dir)(e.into()))
    }

    /// Makes the folder the base `name`, at once and durably.
    pub fn publish(mut self, name: &Name) -> Result<(), Error> {
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

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.dir.as_os_str().is_empty() {
            // What cannot be removed now is removed by the next `clean`.
            let _ = remove_tree(&self.dir);
        }
    }
}

/// Removes what killed imports and removals left. Cheap when there is nothing: every command about
/// bases calls it first.
pub fn clean(pool: &Pool) -> Result<(), Error> {
    let bases = directory::bases(pool);
    let all = directory::lock(&bases, FlockOperation::LockExclusive)?;
    let mut found = false;
    for entry in fs::read_dir(&bases).map_err(Error::io("read", &bases))? {
        let entry = entry.map_err(Error::io("read", &bases))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with(NEW) && !name.starts_with(OLD) {
            continue;
        }
        if directory::lock(&entry.path(), FlockOperation::NonBlockingLockExclusive).is_ok() {
            found = true;
            remove_tree(&entry.path())?;
        }
    }
    drop(all);
    if found {
        gc::want(pool)?;
    }
    gc::run(pool)
}

/// Takes the base in `dir` out of sight. `bases` is locked by the caller.
pub(super) fn retire(bases: &Path, dir: &Path) -> Result<PathBuf, Error> {
    let old = directory::unused(bases, OLD)?;
    fs::rename(dir, &old).map_err(Error::io("remove", dir))?;
    directory::sync(bases)?;
    Ok(old)
}
