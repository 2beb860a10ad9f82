//! The directories of the store, and their locks.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

use super::error::Error;
use crate::pool::Pool;
use crate::process;

/// The directory of all bases.
pub(super) fn bases(pool: &Pool) -> PathBuf {
    pool.root().join("bases")
}

/// A path in `dir` that does not exist, with a name that starts with `prefix`. The caller has
/// locked `dir`.
pub(super) fn unused(dir: &Path, prefix: &str) -> Result<PathBuf, Error> {
    let pid = std::process::id();
    for n in 0_u32.. {
        let path = dir.join(format!("{prefix}{pid}-{n}"));
        match fs::symlink_metadata(&path) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(path),
            Err(e) => return Err(Error::io("stat", &path)(e)),
        }
    }
    unreachable!("a directory has fewer than 2^32 entries")
}

/// Opens the directory of bases and locks it until the descriptor is closed.
pub(super) fn lock_all(pool: &Pool) -> Result<File, Error> {
    let dir = bases(pool);
    let file = opened(&dir)?;
    process::lock(&file, FlockOperation::LockExclusive, pool.waiting(&"the bases"))
        .map_err(Error::io("lock", &dir))?;
    Ok(file)
}

/// Opens the directory of objects and locks it shared until the descriptor is closed: none is
/// collected.
pub(super) fn share_objects(pool: &Pool) -> Result<File, Error> {
    let dir = pool.objects_dir();
    let file = opened(&dir)?;
    process::lock(&file, FlockOperation::LockShared, pool.waiting(&"the objects"))
        .map_err(Error::io("lock", &dir))?;
    Ok(file)
}

/// Opens the directory `dir` and locks it until the descriptor is closed; an error if another
/// command has it locked.
pub(super) fn lock(dir: &Path) -> Result<File, Error> {
    let file = opened(dir)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|e| Error::io("lock", dir)(e.into()))?;
    Ok(file)
}

fn opened(dir: &Path) -> Result<File, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = open(dir, flags, Mode::empty()).map_err(|e| Error::io("open", dir)(e.into()))?;
    Ok(fd.into())
}

/// Syncs the entries of `dir` to disk.
pub(super) fn sync(dir: &Path) -> Result<(), Error> {
    File::open(dir).and_then(|d| d.sync_all()).map_err(Error::io("sync", dir))
}
