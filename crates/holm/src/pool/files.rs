//! Files and directories of a root.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use super::error::{Error, Result};
use super::name::Name;
use crate::Failed;
use crate::failed::make_directories;
use crate::process::call_for_errors;

/// Replaces a file of a root atomically and durably: readers see the old text or the new one, also
/// after a crash. What a killed command leaves of it is in `tmp/`, and removed by the next one.
pub(super) fn write(root: &Path, path: &Path, text: &str) -> Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let new = tmp_file(root, &path.file_name().unwrap_or_default().to_string_lossy())?;
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

/// The path of a file in `tmp/`, which is made if it is missing. The file is to be moved to where
/// it belongs.
pub(super) fn tmp_file(root: &Path, name: &str) -> Result<PathBuf> {
    make_tmp(root)?;
    Ok(root.join("tmp").join(format!("file-{name}-{}", std::process::id())))
}

/// Makes `tmp/`.
pub(super) fn make_tmp(root: &Path) -> Result<()> {
    let tmp = root.join("tmp");
    make_directories(&tmp, 0o700).map_err(|error| Error::io("make the directory", &tmp, error))
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
