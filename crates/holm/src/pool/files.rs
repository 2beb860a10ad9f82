//! Files and directories of a root.

use std::path::Path;
use std::process::Command;
use std::{fs, io};

use super::error::{Error, Result};
use super::name::Name;
use crate::Failed;
use crate::process::call_for_errors;

/// Replaces a file atomically and durably: readers see the old text or the new one, also after a
/// crash.
pub fn write(path: &Path, text: &str) -> Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = directory.join(format!(".{file_name}.{}", std::process::id()));
    let store = || -> io::Result<()> {
        fs::write(&new, text)?;
        fs::File::open(&new)?.sync_all()?;
        fs::rename(&new, path)?;
        fs::File::open(directory)?.sync_all()
    };
    store().map_err(|error| {
        let _ = fs::remove_file(&new);
        Error::io("write the file", path, error)
    })
}

/// Syncs a directory: names that were made, renamed or removed in it are so after a power failure
/// too.
pub(crate) fn sync(directory: &Path) -> std::result::Result<(), Failed> {
    let synced = fs::File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| Failed::new("sync", directory, error))
}

/// Removes a directory tree without ever leaving its filesystem: if something is mounted there
/// against all expectation, that is an error. `rm` copes with any depth of directories, because it
/// keeps no descriptor open for each level.
pub(crate) fn remove_tree(dir: &Path) -> Result<()> {
    let mut rm = Command::new("rm");
    let called = call_for_errors(rm.args(["-rf", "--one-file-system", "--"]).arg(dir), "");
    let called = called.map_err(|error| Error::io("remove", dir, error))?;
    if called.status.success() {
        return Ok(());
    }
    Err(Error::io("remove", dir, io::Error::other(called.printed.trim())))
}

/// The names in a directory, sorted, without those that are no valid [`Name`].
pub(super) fn names_in(directory: &Path) -> Result<Vec<Name>> {
    let fail = |error| Error::io("list", directory, error);
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        names.extend(entry.file_name().to_str().and_then(|name| Name::new(name).ok()));
    }
    names.sort();
    Ok(names)
}
