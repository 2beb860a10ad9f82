use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Why a base cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something of the source that a base must not or cannot hold.
    #[error("{}: {reason}", path.display())]
    Refused {
        /// Where it is in the source.
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
    /// Another program failed.
    #[error("{program} failed: {message}")]
    Tool {
        /// Its name.
        program: &'static str,
        /// The last that it printed.
        message: String,
    },
    /// The system refused something.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// the kernel's error.
        source: io::Error,
    },
}

/// The result of what this library does.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// For `map_err` on what the standard library or rustix refuse.
    pub(crate) fn io<E: Into<io::Error>>(
        what: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::Io { what, path: path.to_owned(), source: source.into() }
    }

    /// For what is refused at `path` of the source.
    pub(crate) fn refused(path: &[u8], reason: impl Into<String>) -> Self {
        Self::Refused { path: PathBuf::from(OsStr::from_bytes(path)), reason: reason.into() }
    }

    /// For a source that cannot be used.
    pub(crate) fn source(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Source { what: what.into(), reason: reason.into() }
    }
}
