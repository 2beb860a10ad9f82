use std::io;

use crate::process::exec_reason;
use crate::{Code, Coded, Details};

/// What can go wrong with a command in a guest.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The guest.
    #[error(transparent)]
    Guest(Box<crate::guest::Error>),
    /// The control group.
    #[error(transparent)]
    Cgroup(#[from] crate::cgroup::Error),
    /// The way into the guest.
    #[error(transparent)]
    Process(#[from] crate::process::Error),
    /// The user.
    #[error(
        "cannot run as {user}: that is neither what the guest's /etc/passwd and /etc/group name, \
         nor a number below {ids}, which is how many ids the guest has"
    )]
    User {
        /// As the caller named it.
        user: String,
        /// The guest's ids are below this.
        ids: u32,
    },
    /// The folder to start in.
    #[error("cannot start in {folder}, which `--cwd` names")]
    Folder {
        /// Its path in the guest.
        folder: String,
        /// The kernel's words.
        source: io::Error,
    },
    /// The command itself.
    #[error("cannot run {program}: {}", exec_reason(*errno))]
    Command {
        /// Its first word.
        program: String,
        /// The kernel's error.
        errno: i32,
    },
}

impl Error {
    pub(crate) fn step(what: &'static str, object: &str, source: impl Into<io::Error>) -> Self {
        Self::Process(crate::process::Error::step(what, object, source))
    }

    /// The status that a shell gives for this failure: 127 if there is no such command, 126 if it
    /// cannot be executed, 125 if it is Holm that failed.
    pub fn status(&self) -> u8 {
        match self {
            Self::Command { errno: 2, .. } => 127,
            Self::Command { .. } => 126,
            _ => 125,
        }
    }
}

impl From<crate::guest::Error> for Error {
    fn from(error: crate::guest::Error) -> Self {
        Self::Guest(Box::new(error))
    }
}

impl Coded for Error {
    fn details(&self) -> Details {
        match self {
            Self::Guest(error) => error.details(),
            Self::Cgroup(error) => error.details(),
            Self::Process(error) => error.details(),
            Self::User { user, .. } => Details::new(Code::UserNotFound).object(user),
            Self::Folder { folder, .. } => {
                Details::new(Code::WorkingDirectoryUnusable).object(folder)
            }
            Self::Command { program, errno } => {
                let code = match self.status() {
                    127 => Code::CommandNotFound,
                    _ => Code::CommandNotExecutable,
                };
                Details::new(code).object(program).reason(exec_reason(*errno))
            }
        }
    }
}
