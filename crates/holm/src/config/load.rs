//! Reads `guest.toml` from disk.

use std::path::Path;

use super::error::Error;

/// The text of a `guest.toml`.
pub fn load(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}
