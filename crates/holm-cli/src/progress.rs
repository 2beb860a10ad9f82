//! One line on the terminal for work that takes long.

use std::io::{IsTerminal, Write};

use crate::context::Context;

/// A line that is written over and over, on standard error if that is a terminal.
#[derive(Debug)]
pub struct Line {
    on: bool,
}

impl Line {
    /// A line; nothing is shown unless standard error is a terminal.
    pub fn new(context: &Context) -> Self {
        Self { on: !context.quiet && !context.json && std::io::stderr().is_terminal() }
    }

    /// Shows a text, as much of it as fits.
    pub fn show(&mut self, text: &str) {
        if self.on {
            let columns = rustix::termios::tcgetwinsize(std::io::stderr()).map_or(80, |w| w.ws_col);
            // A file of an archive has any name it likes.
            let text = text.chars().filter(|c| !c.is_control());
            let text: String = text.take(usize::from(columns.max(20)) - 1).collect();
            put(&format!("\r\x1b[K{text}"));
        }
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        if self.on {
            put("\r\x1b[K");
        }
    }
}

fn put(text: &str) {
    // There is no terminal to write to if this fails.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
