//! How a guest's init ended, as its monitor saw it.

use crate::Text;
use core::fmt;

/// The verb that a monitor executes at the end: `holm monitor-ended --root ROOT NAME STATUS...`,
/// each part of the [`Ended`] as an argument of its own.
pub const VERB: &core::ffi::CStr = c"monitor-ended";

/// Room for the longest text of an [`Ended`].
pub const TEXT_MAX: usize = 24;

/// The end of an init as its monitor saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// What the kernel said.
    pub how: How,
    /// The guest had been adopted: its monitor was not init's parent, and cannot tell a reboot or a
    /// poweroff from `exited 0`.
    pub adopted: bool,
}

/// What the kernel said about an ended process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It ended by itself, with this status.
    Exited(u8),
    /// A signal ended it. SIGHUP is the guest's reboot, SIGINT its halt or poweroff.
    Killed(u8),
    /// Not known: the monitor was not init's parent, and the kernel is older than 6.15, which
    /// reports the exit status by pidfd.
    Unknown,
}

impl Ended {
    /// Reads `exited 3`, `killed 9` or `unknown`, each perhaps followed by `adopted`.
    pub fn parse(text: &str) -> Option<Ended> {
        let (text, adopted) = match text.strip_suffix(" adopted") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let how = match text.split_once(' ') {
            None if text == "unknown" => How::Unknown,
            Some(("exited", status)) => How::Exited(status.parse().ok()?),
            Some(("killed", signal)) => How::Killed(signal.parse().ok()?),
            _ => return None,
        };
        Some(Ended { how, adopted })
    }

    /// Writes what [`Ended::parse`] reads; returns its length.
    pub fn write(self, buffer: &mut [u8]) -> usize {
        let mut text = Text::new(buffer);
        match self.how {
            How::Exited(status) => text.put(b"exited ").number(status.into()),
            How::Killed(signal) => text.put(b"killed ").number(signal.into()),
            How::Unknown => text.put(b"unknown"),
        };
        if self.adopted {
            text.put(b" adopted");
        }
        text.len()
    }

    /// The guest asked to be started again.
    pub fn is_reboot(self) -> bool {
        self.how == How::Killed(1)
    }

    /// The guest switched itself off.
    pub fn is_poweroff(self) -> bool {
        self.how == How::Killed(2)
    }
}

/// What a monitor leaves in the file [`crate::path::ENDED`], for a command that comes by before it
/// has recorded the end itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// Which run it was: the inode of init's pidfd. The guest may have been started again by now.
    pub run: u64,
    /// How it ended.
    pub ended: Ended,
}

/// Room for the longest text of a [`Note`].
pub const NOTE_MAX: usize = 21 + TEXT_MAX;

impl Note {
    /// Reads `RUN STATUS`, perhaps with a line feed behind it.
    pub fn parse(text: &str) -> Option<Note> {
        let (run, ended) = text.trim_ascii_end().split_once(' ')?;
        Some(Note { run: run.parse().ok()?, ended: Ended::parse(ended)? })
    }

    /// Writes what [`Note::parse`] reads; returns its length.
    pub fn write(self, buffer: &mut [u8]) -> usize {
        let mut text = Text::new(buffer);
        text.number(self.run).put(b" ");
        let len = text.len();
        len + buffer.get_mut(len..).map_or(0, |rest| self.ended.write(rest))
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; TEXT_MAX];
        let len = self.write(&mut text);
        f.write_str(core::str::from_utf8(&text[..len]).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::{Ended, How, NOTE_MAX, Note, TEXT_MAX};
    use std::string::ToString;

    #[test]
    fn an_end_is_read_as_it_is_written() {
        for (text, how, adopted) in [
            ("exited 0", How::Exited(0), false),
            ("exited 3 adopted", How::Exited(3), true),
            ("killed 9", How::Killed(9), false),
            ("unknown adopted", How::Unknown, true),
        ] {
            let ended = Ended::parse(text).unwrap();
            assert_eq!(ended, Ended { how, adopted });
            assert_eq!(ended.to_string(), text);
        }
        for text in ["", "exited", "exited x", "exited 300", "killed", "unknown 1", "adopted"] {
            assert_eq!(Ended::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_note_is_read_as_it_is_written() {
        let note = Note { run: u64::MAX, ended: Ended { how: How::Exited(255), adopted: true } };
        let mut buffer = [0; NOTE_MAX];
        let len = note.write(&mut buffer);
        let text = core::str::from_utf8(&buffer[..len]).unwrap();
        assert_eq!(text, "18446744073709551615 exited 255 adopted");
        assert_eq!(Note::parse(text), Some(note));
        assert_eq!(Note::parse("7 killed 9\n").map(|note| note.run), Some(7));
        for text in ["", "7", "7 ", "x exited 0", "7 exited", " exited 0"] {
            assert_eq!(Note::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_longest_text_has_room() {
        let longest = Ended { how: How::Exited(255), adopted: true };
        assert!(longest.to_string().len() <= TEXT_MAX);
    }
}
