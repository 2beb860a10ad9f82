//! The caller's terminal in raw mode.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// A terminal in raw mode. Dropping this restores the previous modes.
#[derive(Debug)]
pub struct Raw<'a> {
    terminal: BorrowedFd<'a>,
    before: Termios,
}

impl<'a> Raw<'a> {
    /// Makes `terminal` raw; `None` when it is no terminal.
    pub fn enter(terminal: BorrowedFd<'a>) -> io::Result<Option<Raw<'a>>> {
        let Ok(before) = tcgetattr(terminal) else { return Ok(None) };
        let raw = Raw { terminal, before };
        raw.reapply()?;
        Ok(Some(raw))
    }

    /// Makes it raw again, after the shell has set its own modes.
    pub fn reapply(&self) -> io::Result<()> {
        let mut modes = self.before.clone();
        modes.make_raw();
        Ok(tcsetattr(self.terminal, OptionalActions::Now, &modes)?)
    }
}

impl Drop for Raw<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Drain, &self.before);
    }
}

/// Makes the terminal `to` as large as `from`, when both are terminals.
pub fn copy_size(from: impl AsFd, to: impl AsFd) {
    if let Ok(size) = tcgetwinsize(from) {
        let _ = tcsetwinsize(to, size);
    }
}
