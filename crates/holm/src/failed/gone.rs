//! Telling what is not there from what could not be looked at.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::Failed;

/// What was found; `None` if it is not there. Every other error stays one: a guest must not be
/// taken for gone because the kernel was out of memory or the disk could not be read.
pub(crate) fn unless_gone<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes a directory, and those above it, unless it is there. The standard library's takes one that
/// cannot be looked at for a file in the way.
pub(crate) fn make_directories(path: &Path, mode: u32) -> io::Result<()> {
    let make = || match fs::DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    };
    match (make(), path.parent()) {
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
            make_directories(parent, mode)?;
            make()
        }
        (result, _) => result,
    }
}

/// The text of a file, if there is one.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<String>, Failed> {
    let text = unless_gone(fs::read_to_string(path));
    text.map_err(|error| Failed::new("read", path, error))
}

/// The bytes of a file, if there is one.
pub(crate) fn bytes_if_there(path: &Path) -> Result<Option<Vec<u8>>, Failed> {
    let bytes = unless_gone(fs::read(path));
    bytes.map_err(|error| Failed::new("read", path, error))
}

/// Where a link leads, if there is one.
pub(crate) fn link_if_there(path: &Path) -> Result<Option<PathBuf>, Failed> {
    let link = unless_gone(fs::read_link(path));
    link.map_err(|error| Failed::new("read the link", path, error))
}

/// Whether there is a directory at this path. A link is followed.
pub(crate) fn is_directory(path: &Path) -> Result<bool, Failed> {
    let found = unless_gone(fs::metadata(path));
    let found = found.map_err(|error| Failed::new("look at", path, error))?;
    Ok(found.is_some_and(|found| found.is_dir()))
}

/// Whether there is a link at this path.
pub(crate) fn is_link(path: &Path) -> Result<bool, Failed> {
    let found = unless_gone(fs::symlink_metadata(path));
    let found = found.map_err(|error| Failed::new("look at", path, error))?;
    Ok(found.is_some_and(|found| found.is_symlink()))
}

/// Whether there is something at this path. A link is followed.
pub(crate) fn is_there(path: &Path) -> Result<bool, Failed> {
    path.try_exists().map_err(|error| Failed::new("look at", path, error))
}
