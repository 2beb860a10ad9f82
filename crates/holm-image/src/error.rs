use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An error of reading a source or writing a base.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file in the source that a base must not or cannot contain.
    #[error("{}: {reason}", path.display())]
    Refused {
        /// Its path in the source.
        path: PathBuf,
        /// What it is, and what to do.
        reason: String,
    },
    /// The source as a whole cannot be used.
    #[error("{what}: {reason}")]
    Source {
        /// The source.
        what: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// The disk has no room for the base.
    #[error(
        "No space left for this base in {}: an import keeps {} KiB free there for what runs on \
         the disk",
        path.display(),
        reserve >> 10
    )]
    NoRoom {
        /// The object store.
        path: PathBuf,
        /// How many bytes stay free.
        reserve: u64,
    },
    /// Another program failed.
    #[error("{program} failed: {message}")]
    Tool {
        /// Its name.
        program: &'static str,
        /// The end of its output.
        message: String,
    },
    /// No thread could be made.
    #[error(
        "cannot start a thread: {0}; end other processes, or raise what limits their number: \
         ulimit -u, TasksMax= of the unit"
    )]
    Thread(io::Error),
    /// The system refused something.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

/// A result with this library's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// For `map_err` on errors of the standard library and rustix.
    pub(crate) fn io<E: Into<io::Error>>(
        what: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::Io { what, path: path.to_owned(), source: source.into() }
    }

    /// For a file of the source that is refused.
    pub(crate) fn refused(path: &[u8], reason: impl Into<String>) -> Self {
        Self::Refused { path: PathBuf::from(OsStr::from_bytes(path)), reason: reason.into() }
    }

    /// For a source that cannot be used.
    pub(crate) fn source(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Source { what: what.into(), reason: reason.into() }
    }
}
