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
}
