use std::io;
use std::path::Path;

/// An error of an import.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The arguments are invalid, which is a bug in the caller.
    #[error("usage: holm-import --root DIR OPTION... -- SOURCE or GUEST... ({0})")]
    Usage(&'static str),
    /// A pattern of paths is none.
    #[error("`{0}` is no pattern of paths: {1}")]
    Pattern(String, glob::PatternError),
    /// The source has no files.
    #[error("{0}: there are no files in it")]
    Empty(String),
    /// The source cannot be read, or its content cannot be stored.
    #[error(transparent)]
    Image(#[from] holm_image::Error),
    /// The base could not be stored.
    #[error(transparent)]
    Store(#[from] holm::store::Error),
    /// The Holm root could not be used.
    #[error(transparent)]
    Pool(#[from] holm::pool::Error),
}

/// A result with this program's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// For `map_err` on errors of the standard library and rustix.
    pub fn io<E: Into<io::Error>>(what: &'static str, path: &Path) -> impl FnOnce(E) -> Self {
        move |source| {
            let path = path.to_owned();
            Self::Image(holm_image::Error::Io { what, path, source: source.into() })
        }
    }

    /// The error with its causes, and a remedy if the disk is full.
    pub fn to_text(&self) -> String {
        let mut text = self.to_string();
        let mut full = matches!(self, Self::Image(holm_image::Error::NoRoom { .. }));
        let mut cause = std::error::Error::source(self);
        while let Some(e) = cause {
            text = format!("{text}: {e}");
            full |= e.downcast_ref::<io::Error>().is_some_and(is_full);
            cause = e.source();
        }
        if full {
            text += "; nothing was kept: free some space, \
                     or put the Holm root on a larger disk (--root)";
        }
        text
    }
}

/// Whether the disk, or a quota on it, is full.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
