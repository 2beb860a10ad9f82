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
        // At the end of a line, such as before its carriage return, there may be nothing to show.
        let (shown, indent) = part(line_text, before);
        let carets = text[start..end]
            .chars()
            .count()
            .min(shown.chars().count().saturating_sub(indent))
            .max(1);
        let margin = " ".repeat(line.to_string().len());
        let excerpt = format!(
            "{margin} |\n{line} | {shown}\n{margin} | {}{}",
            " ".repeat(indent),
            "^".repeat(carets)
        );
        let message = in_bounds(message);
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

/// What an error shows of a line around the character `at`, and where that is in it. A damaged file
/// may be a single line of megabytes, and of bytes that a terminal obeys.
fn part(line: &str, at: usize) -> (String, usize) {
    const WIDTH: usize = 100;
    let length = line.chars().count();
    let begin = if length > WIDTH { at.saturating_sub(WIDTH / 2) } else { 0 };
    let visible = |c: char| match u32::from(c) {
        0x09 => ' ',
        // Unicode has a picture of each control character.
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or(' '),
        _ if c.is_control() => '\u{2421}',
        _ => c,
    };
    let shown: String = line.chars().skip(begin).take(WIDTH).map(visible).collect();
    let (before, after) =
        (if begin > 0 { "..." } else { "" }, if begin + WIDTH < length { "..." } else { "" });
    (format!("{before}{shown}{after}"), at - begin + before.len())
}

/// A message that quotes a value, which may be megabytes, at a length that can be read.
fn in_bounds(message: String) -> String {
    const LONGEST: usize = 1000;
    let Some((cut, _)) = message.char_indices().nth(LONGEST) else { return message };
    format!("{}...", &message[..cut])
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
