//! What can go wrong between Holm and a monitor.

use crate::{Code, Coded, Details};
use std::io;

/// An error that names the guest and what was tried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No process listens on the guest's socket.
    #[error(
        "guest {guest} has no monitor to show its console: it is stopped, or \
         `holm status {guest}` puts a new one in place"
    )]
    NoMonitor {
        /// The guest's name.
        guest: String,
    },
    /// A call to the kernel failed.
    #[error("guest {guest}: {what}")]
    System {
        /// The guest's name.
        guest: String,
        /// What was tried.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
}

impl Error {
    pub(super) fn system(guest: &str, what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let (guest, what) = (guest.to_owned(), what.into());
        move |source| Error::System { guest, what, source }
    }
}

impl Coded for Error {
    fn details(&self) -> Details {
        match self {
            Self::NoMonitor { guest } => Details::new(Code::MonitorMissing)
                .object(guest)
                .remedy(format!("holm status {guest}")),
            Self::System { guest, .. } => Details::new(Code::SystemError).object(guest),
        }
    }
}
