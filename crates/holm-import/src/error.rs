use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// Why a base could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The arguments are wrong, which is a fault of the caller, not of a person.
    #[error("usage: holm-import --root DIR --name NAME [--mirror URL] -- SOURCE ({0})")]
    Usage(&'static str),
    /// Something of the source that a base must not or cannot hold.
    #[error("{}: {reason}", path.display())]
    Refused {
        /// Where it is in the source.
        path: PathBuf,
        /// What it is, and what to do.
        reason: String,
    },
    /// The source as a whole is of no use.
    #[error("{what}: {reason}")]
    Source {
        /// The source.
        what: String,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// Another program failed.
    #[error("{program} failed: {words}")]
    Tool {
        /// Its name.
        program: &'static str,
        /// The last it said.
        words: String,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] holm::store::Error),
    /// The pool.
    #[error(transparent)]
    Pool(#[from] holm::pool::Error),
    /// The system refused something.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// The kernel's words.
        source: io::Error,
    },
}

/// The result of what this program does.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// For `map_err` on what the standard library or rustix refuse.
    pub fn io<E: Into<io::Error>>(what: &'static str, path: &Path) -> impl FnOnce(E) -> Self {
        move |source| Self::Io { what, path: path.to_owned(), source: source.into() }
    }

    /// For what is refused at `path` of the source.
    pub fn refused(path: impl AsRef<OsStr>, reason: impl Into<String>) -> Self {
        Self::Refused { path: PathBuf::from(path.as_ref()), reason: reason.into() }
    }

    /// For a source that is of no use.
    pub fn source(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Source { what: what.into(), reason: reason.into() }
    }

    /// Whether the disk, or a quota on it, is full.
    pub fn is_full(&self) -> bool {
        let mut error: Option<&dyn std::error::Error> = Some(self);
        while let Some(e) = error {
            let kind = e.downcast_ref::<io::Error>().map(io::Error::kind);
            if matches!(kind, Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)) {
                return true;
            }
            error = e.source();
        }
        false
    }
}
