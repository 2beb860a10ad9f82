//! What every error has in common: what was tried with what, and what a program is told.

mod code;
mod details;
mod gone;

use std::io;
use std::path::Path;

pub use code::Code;
pub use details::{Coded, Details};
pub(crate) use gone::{
    bytes_if_there, is_directory, is_link, is_there, link_if_there, make_directories,
    read_if_there, unless_gone,
};

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
        is_no_room(&self.source)
    }
}

/// Whether an error says that nothing more can be written.
pub(crate) fn is_no_room(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem)
}

impl Coded for Failed {
    fn details(&self) -> Details {
        let code = if self.is_no_room() { Code::StorageFull } else { Code::SystemError };
        Details::new(code).object(&self.object)
    }
}

/// An error and its causes as one line: for passing from process to process.
pub(crate) fn in_one_line(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        line = format!("{line}: {source}");
        cause = source.source();
    }
    line
}
