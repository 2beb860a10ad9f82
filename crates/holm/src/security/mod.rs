//! What guest root may not do: capabilities and system calls. The masked paths of /proc and /sys
//! are in the mount table ([`crate::rootfs::TABLE`]).
//!
//! The first barrier is the user namespace: to the kernel, and for every file that it does not own,
//! guest root is an unprivileged user. This module closes what the user namespace leaves open:
//! system calls that need no privilege and affect the host, and kernel code that a guest never
//! needs.

mod bpf;
pub mod caps;
pub mod seccomp;

pub use caps::{apply_caps, bounding_set};
pub use seccomp::{install, seccomp};

use crate::{Code, Coded, Details};

/// What went wrong with a guest's confinement.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that no capability has.
    #[error("security.caps: there is no capability {0:?}; `man 7 capabilities` lists them")]
    UnknownCapability(String),
    /// A capability that no guest may have.
    #[error("security.caps: no guest may have {0}: {1}")]
    NotGrantable(String, &'static str),
    /// The kernel refused to narrow the capabilities.
    #[error("cannot drop capabilities of the guest's init")]
    Capabilities(#[source] std::io::Error),
    /// The kernel refused the filter.
    #[error(
        "cannot install the system call filter (`holm doctor` shows whether the kernel has CONFIG_SECCOMP_FILTER)"
    )]
    Filter(#[source] std::io::Error),
}

impl Error {
    /// The kernel's error alone: the child's message to its parent has room for an errno only.
    pub fn into_kernel(self) -> std::io::Error {
        match self {
            Self::Capabilities(error) | Self::Filter(error) => error,
            other => std::io::Error::other(other.to_string()),
        }
    }
}

impl Coded for Error {
    fn details(&self) -> Details {
        match self {
            Self::UnknownCapability(name) => Details::new(Code::CapabilityUnknown).object(name),
            Self::NotGrantable(name, reason) => {
                Details::new(Code::CapabilityRefused).object(name).reason(reason)
            }
            Self::Capabilities(_) | Self::Filter(_) => Details::new(Code::ConfinementFailed),
        }
    }
}
