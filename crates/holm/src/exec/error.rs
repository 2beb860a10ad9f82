use std::io;

use crate::process::exec_reason;
use crate::{Code, Coded, Details};

/// The result of what this module does.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong with a command in a guest.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cgroup.
    #[error(transparent)]
    Cgroup(#[from] crate::cgroup::Error),
    /// The process between clone and exec.
    #[error(transparent)]
    Process(#[from] crate::process::Error),
    /// The user.
    #[error(
        "user {user} is not in the guest's /etc/passwd or /etc/group, and is no id below {ids}, \
         the end of the guest's range"
    )]
    User {
        /// As the caller named it.
        user: String,
        /// The guest's ids are below this.
        ids: u32,
    },
    /// The working directory.
    #[error("cannot change to the working directory {directory} (`--cwd`)")]
    Directory {
        /// Its path in the guest.
        directory: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The command itself.
    #[error("cannot run {program}: {}", exec_reason(*errno))]
    Command {
        /// Its name or path.
        program: String,
        /// The kernel's error.
        errno: i32,
    },
}

impl Error {
    pub(crate) fn step(what: &'static str, object: &str, source: impl Into<io::Error>) -> Self {
        Self::Process(crate::process::Error::step(what, object, source))
    }

    /// The exit status that a shell gives for this failure: 127 if there is no such command, 126 if
    /// it cannot be executed, 125 if it is Holm that failed.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Command { errno: 2, .. } => 127,
            Self::Command { .. } => 126,
            _ => 125,
        }
    }
}

impl Coded for Error {
    fn details(&self) -> Details {
        match self {
            Self::Cgroup(error) => error.details(),
            Self::Process(error) => error.details(),
            Self::User { user, .. } => Details::new(Code::UserNotFound).object(user),
            Self::Directory { directory, .. } => {
                Details::new(Code::WorkingDirectoryUnusable).object(directory)
            }
            Self::Command { program, errno } => {
                let code = match self.exit_status() {
                    127 => Code::CommandNotFound,
                    _ => Code::CommandNotExecutable,
                };
                Details::new(code).object(program).reason(exec_reason(*errno))
            }
        }
    }
}
