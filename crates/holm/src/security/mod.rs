//! What guest root may not do: capabilities and system calls. What of /proc and /sys is masked stands in the mount table
//! ([`crate::rootfs::TABLE`]).
//!
//! The first wall is the user namespace: guest root is an ordinary, unmapped user for the kernel and
//! for every file it does not own. What is here takes away what the user namespace leaves: calls
//! that need no privilege and reach the host, and kernel code that a guest never needs.

mod bpf;
pub mod caps;
pub mod seccomp;

pub use caps::{apply_caps, bounding_set};
pub use seccomp::{install, seccomp};

use crate::{Code, Coded, Details};

/// What went wrong with a guest's confinement.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A word that names no capability.
    #[error("security.caps: there is no capability {0:?}; `man 7 capabilities` lists them")]
    UnknownCapability(String),
    /// A capability that no guest may have.
    #[error("security.caps: {0} is above the bound: {1}; no guest may have it")]
    AboveBound(String, &'static str),
    /// The kernel refused to narrow the capabilities.
    #[error("cannot take capabilities away from the guest's init")]
    Capabilities(#[source] std::io::Error),
    /// The kernel refused the filter.
    #[error(
        "cannot put the guest's init under the system call filter (`holm doctor` tells whether the kernel has CONFIG_SECCOMP_FILTER)"
    )]
    Filter(#[source] std::io::Error),
}

impl Error {
    /// The kernel's error alone, for the side of a launch that can pass on no more than a number.
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
            Self::AboveBound(name, reason) => {
                Details::new(Code::CapabilityRefused).object(name).reason(reason)
            }
            Self::Capabilities(_) | Self::Filter(_) => Details::new(Code::ConfinementFailed),
        }
    }
}
