use std::io;

use crate::process::{self, exec_reason};
use crate::{Code, Coded, Details, Failed};

/// What can go wrong while a guest is launched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A mount could not be made.
    #[error(transparent)]
    Rootfs(#[from] crate::rootfs::Error),
    /// The network could not be made.
    #[error(transparent)]
    Net(#[from] crate::net::Error),
    /// The capabilities or the filter could not be made.
    #[error(transparent)]
    Security(#[from] crate::security::Error),
    /// Init could not be executed.
    #[error("cannot run init, which is {program}: {}", exec_reason(*errno))]
    Exec {
        /// Its path in the guest.
        program: String,
        /// The kernel's error.
        errno: i32,
    },
    /// Init could not be cloned, or failed before its exec.
    #[error(transparent)]
    Process(#[from] process::Error),
    /// The run record could not be written.
    #[error("{0}")]
    Record(String),
    /// The kernel refused something.
    #[error(transparent)]
    Failed(Failed),
}

impl Error {
    pub(crate) fn step(what: &'static str, object: &str, source: impl Into<io::Error>) -> Self {
        Self::Failed(Failed::new(what, object, source))
    }
}

impl Coded for Error {
    fn details(&self) -> Details {
        match self {
            Self::Rootfs(error) => error.details(),
            Self::Net(error) => error.details(),
            Self::Security(error) => error.details(),
            Self::Exec { program, errno } => {
                Details::new(Code::InitNotExecutable).object(program).reason(exec_reason(*errno))
            }
            Self::Process(error) => error.details(),
            Self::Record(reason) => Details::new(Code::SystemError).reason(reason),
            Self::Failed(failed) => failed.details(),
        }
    }
}
