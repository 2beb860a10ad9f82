//! How a guest's init ended, in the words that a monitor passes on.

use std::fmt;

/// The end of an init as its monitor saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// What the kernel said.
    pub how: How,
    /// The monitor was not init's parent: it cannot tell a reboot or a poweroff from `exited 0`.
    pub adopted: bool,
}

/// What the kernel said about an ended process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It ended by itself, with this status.
    Exited(u8),
    /// A signal ended it. SIGHUP is the guest's reboot, SIGINT its halt or poweroff.
    Killed(u8),
    /// Nobody knows: a kernel older than 6.15, and a monitor that was not the parent.
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
            Some(("exited", code)) => How::Exited(code.parse().ok()?),
            Some(("killed", signal)) => How::Killed(signal.parse().ok()?),
            _ => return None,
        };
        Some(Ended { how, adopted })
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

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.how {
            How::Exited(code) => write!(f, "exited {code}")?,
            How::Killed(signal) => write!(f, "killed {signal}")?,
            How::Unknown => write!(f, "unknown")?,
        }
        f.write_str(if self.adopted { " adopted" } else { "" })
    }
}
