//! Locks of what an instance, or the host, has once.

use std::fmt::Display;
use std::fs::File;
use std::path::PathBuf;

use rustix::fs::FlockOperation;

use super::error::Error;
use crate::failed::make_directories;
use crate::process::{self, Waiting};

/// The file that is locked for something of an instance, and stays.
pub fn path(instance: u8, name: &str) -> PathBuf {
    PathBuf::from(format!("/run/holm/{instance}/{name}.lock"))
}

/// The file that is locked for something of all instances, and stays.
pub fn common_path(name: &str) -> PathBuf {
    PathBuf::from(format!("/run/holm/{name}.lock"))
}

/// Locks a file of [`path`], for `what`, until the result is dropped.
pub fn lock(path: PathBuf, what: &dyn Display) -> Result<File, Error> {
    path.parent()
        .map_or(Ok(()), |directory| make_directories(directory, 0o755))
        .and_then(|()| File::create(&path))
        .and_then(|file| {
            let waiting = Waiting { what, say: None };
            process::lock(&file, FlockOperation::LockExclusive, waiting).map(|()| file)
        })
        .map_err(|source| Error::Lock { path, source })
}
