//! The folders `bases/.new-XXXX`, in which imports are built, and what is left of killed ones.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, RenameFlags, flock, mkdirat, open, renameat_with};
use rustix::io::{Errno, FdFlags, fcntl_setfd};

use super::{Error, bases_dir, gc};
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
        let bases = bases_dir(pool);
        // Held until the new folder is locked itself, else `clean` could take it for a stale one.
        let _all = lock_dir(&bases, FlockOperation::LockExclusive)?;
        let dir = unused(&bases, NEW)?;
        mkdirat(rustix::fs::CWD, &dir, Mode::from_raw_mode(0o700))
            .map_err(|e| Error::io("create", &dir)(e.into()))?;
        let lock = lock_dir(&dir, FlockOperation::NonBlockingLockExclusive)?;
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
        sync_dir(&self.dir)?;
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
        sync_dir(&self.bases)
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
    let bases = bases_dir(pool);
    let all = lock_dir(&bases, FlockOperation::LockExclusive)?;
    let mut found = false;
    for entry in fs::read_dir(&bases).map_err(Error::io("read", &bases))? {
        let entry = entry.map_err(Error::io("read", &bases))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with(NEW) && !name.starts_with(OLD) {
            continue;
        }
        if lock_dir(&entry.path(), FlockOperation::NonBlockingLockExclusive).is_ok() {
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

/// An unused name in `dir` that starts with `prefix`. Only called with `dir` locked.
fn unused(dir: &Path, prefix: &str) -> Result<PathBuf, Error> {
    let pid = std::process::id();
    for n in 0_u32.. {
        let path = dir.join(format!("{prefix}{pid}-{n}"));
        match fs::symlink_metadata(&path) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(path),
            Err(e) => return Err(Error::io("look at", &path)(e)),
        }
    }
    unreachable!("a folder holds fewer than 2^32 entries")
}

/// Takes the base in `dir` out of sight. `bases` is locked by the caller.
pub(super) fn retire(bases: &Path, dir: &Path) -> Result<PathBuf, Error> {
    let old = unused(bases, OLD)?;
    fs::rename(dir, &old).map_err(Error::io("remove", dir))?;
    sync_dir(bases)?;
    Ok(old)
}

/// Opens the folder `dir` and locks it for as long as the descriptor lives.
pub(super) fn lock_dir(dir: &Path, operation: FlockOperation) -> Result<File, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = open(dir, flags, Mode::empty()).map_err(|e| Error::io("open", dir)(e.into()))?;
    flock(&fd, operation).map_err(|e| Error::io("lock", dir)(e.into()))?;
    Ok(fd.into())
}

fn sync_dir(dir: &Path) -> Result<(), Error> {
    File::open(dir).and_then(|d| d.sync_all()).map_err(Error::io("write", dir))
}
