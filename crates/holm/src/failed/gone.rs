//! Telling what is not there from what could not be looked at.

use std::io;
use std::path::Path;

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

/// Whether there is something at this path. A link is followed.
pub(crate) fn is_there(path: &Path) -> Result<bool, Failed> {
    path.try_exists().map_err(|error| Failed::new("look at", path, error))
}
