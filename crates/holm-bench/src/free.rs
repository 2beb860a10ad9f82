//! Room on a filesystem.

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
