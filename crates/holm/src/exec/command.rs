use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use super::Error;
use crate::process;
use crate::terminal::Terminals;

/// What to run in a guest, and as whom.
#[derive(Debug, Clone, Default)]
pub struct Command {
    /// Program and arguments; empty for the user's login shell.
    pub argv: Vec<String>,
    /// Added to the environment that the user would have after a login.
    pub env: BTreeMap<String, String>,
    /// The working directory; without it the user's home.
    pub directory: Option<String>,
    /// A user name or uid of the guest, optionally `:GROUP` after it; without it root.
    pub user: Option<String>,
}

impl Command {
    /// The error of a failed step, with the argument that it is about.
    pub(super) fn failed(&self, error: process::Error, ids: u32) -> Error {
        let or =
            |given: &Option<String>, default: &str| given.clone().unwrap_or(default.to_owned());
        match error {
            process::Error::Exec { errno, .. } => {
                let program = self.argv.first().map_or("the login shell", String::as_str);
                Error::Command { program: program.to_owned(), errno }
            }
            process::Error::NoUser => Error::User { user: or(&self.user, "root"), ids },
            process::Error::Directory(source) => {
                Error::Directory { directory: or(&self.directory, "/"), source }
            }
            error => error.into(),
        }
    }
}

/// What a command's standard streams are.
#[derive(Debug)]
pub enum Streams {
    /// The caller's, except those that are terminals.
    Callers(Terminals),
    /// This device. Holm runs the program for its own ends, and it is the guest's: it gets nothing
    /// of the caller's, whose terminal and input it could read.
    Null(OwnedFd),
}

impl Streams {
    /// Which standard streams are to be a terminal of the guest's.
    pub fn terminals(&self) -> Terminals {
        match self {
            Self::Callers(terminals) => *terminals,
            Self::Null(_) => [false; 3],
        }
    }

    /// Whether any of them is.
    pub fn has_terminal(&self) -> bool {
        self.terminals().contains(&true)
    }
}
