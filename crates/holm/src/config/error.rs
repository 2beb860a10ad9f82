//! Errors in a `guest.toml` or in a change to one.

use std::io;
use std::ops::Range;
use std::path::PathBuf;

use crate::{Code, Coded, Details};

/// A mistake and its place.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A mistake in a file.
    #[error("{origin}:{line}:{column}: {message}")]
    File {
        /// The file, as the caller named it.
        origin: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong and how to correct it.
        message: String,
        /// The line, with carets below the place.
        excerpt: String,
    },
    /// A mistake in a change, as `memory.limit=512X`.
    #[error("{change}: {message}")]
    Change {
        /// The change as it was typed.
        change: String,
        /// What is wrong and how to correct it.
        message: String,
    },
    /// A file that cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

impl Error {
    /// A mistake in the bytes `span` of `text`.
    pub(super) fn at(text: &str, origin: &str, span: Range<usize>, message: String) -> Self {
        let start = span.start.min(text.len());
        let line_start = text[..start].rfind('\n').map_or(0, |n| n + 1);
        let line_text = text[line_start..].lines().next().unwrap_or("");
        let line = text[..start].matches('\n').count() + 1;
        let before = text[line_start..start].chars().count();
        let end = span.end.clamp(start, line_start + line_text.len().max(start - line_start));
        let carets = text[start..end].chars().count().max(1);
        let margin = " ".repeat(line.to_string().len());
        let excerpt = format!(
            "{margin} |\n{line} | {}\n{margin} | {}{}",
            line_text.replace('\t', " "),
            " ".repeat(before),
            "^".repeat(carets)
        );
        Self::File { origin: origin.to_owned(), line, column: before + 1, message, excerpt }
    }

    /// The line of the file, with carets below the place.
    pub fn excerpt(&self) -> Option<&str> {
        match self {
            Self::File { excerpt, .. } => Some(excerpt),
            Self::Change { .. } | Self::Read { .. } => None,
        }
    }
}

impl Coded for Error {
    fn details(&self) -> Details {
        match self {
            Self::File { origin, message, .. } => {
                Details::new(Code::SettingsInvalid).object(origin).reason(message)
            }
            Self::Change { change, message } => {
                Details::new(Code::ChangeInvalid).object(change).reason(message)
            }
            Self::Read { path, .. } => {
                Details::new(Code::SettingsUnreadable).object(path.display())
            }
        }
    }
}
