use std::io;
use std::path::Path;

/// Something that the kernel refused.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} {object}")]
pub struct Failed {
    /// What was tried.
    pub what: &'static str,
    /// With what.
    pub object: String,
    /// The kernel's words.
    pub source: io::Error,
}

impl Failed {
    pub(crate) fn new(
        what: &'static str,
        object: impl AsRef<Path>,
        source: impl Into<io::Error>,
    ) -> Self {
        let object = object.as_ref().display().to_string();
        Self { what, object, source: source.into() }
    }

    /// Whether it failed because nothing more can be written where the object is.
    pub(crate) fn is_no_room(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        matches!(self.source.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem)
    }
}
