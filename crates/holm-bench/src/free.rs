//! Room on a filesystem.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::rounds::Case;

/// Bytes that are free on the filesystem of a directory, once all is written.
pub fn free(directory: &Path) -> Result<u64, String> {
    let directory = directory.to_string_lossy();
    Case::new("sync", ["sync", "-f", &directory]).output()?;
    let df = ["df", "--output=avail", "--block-size=1", &directory];
    let text = Case::new("df", df).output()?;
    let bytes = text.split_whitespace().last().and_then(|bytes| bytes.parse().ok());
    bytes.ok_or(format!("df: {text}"))
}

/// KiB allocated to a file, or to a directory and all in it.
pub fn allocated(path: &Path) -> u64 {
    let Ok(meta) = fs::symlink_metadata(path) else { return 0 };
    let mut kib = meta.blocks() / 2;
    if meta.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            kib += allocated(&entry.path());
        }
    }
    kib
}
