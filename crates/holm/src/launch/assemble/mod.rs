//! Assembling a guest around a process that holds its namespaces: its mounts and devices, its
//! network.
//!
//! Nothing here clones init or waits for it. A start assembles around the init that it has cloned.
//! A restore, which gets the namespaces of a guest from elsewhere, can do the same in a mount
//! namespace that the host owns.

mod mounts;
mod network;

use std::os::fd::{BorrowedFd, OwnedFd};

use holm_sys::process::{Namespace, flags, join, namespace};

pub use mounts::{mount_host_side, mount_joined};
pub use network::{attach_network, configure_network};

use super::{Error, Result};
use crate::net;
use crate::record::{Ids, Network};
use crate::rootfs::{Namespaces, Sources};
use crate::system::File;

/// What a guest is assembled from.
#[derive(Debug, Clone, Copy)]
pub struct Assembly<'a> {
    /// The guest's ids.
    pub ids: Ids,
    /// What its mounts are made of.
    pub sources: Sources<'a>,
    /// Files to inject before init runs.
    pub files: &'a [File],
    /// A datagram socket to bind in the guest, for `sd_notify(3)`.
    pub notify: Option<&'a OwnedFd>,
    /// The guest's network.
    pub net: &'a Network,
}

/// The namespaces of the process behind `pidfd` that mounts depend on.
pub fn namespaces_of(pidfd: BorrowedFd<'_>) -> Result<Namespaces> {
    Ok(Namespaces {
        user: namespace(pidfd, Namespace::User)
            .map_err(|error| Error::step("open the user namespace of", "init", error))?,
        pid: namespace(pidfd, Namespace::Pid)
            .map_err(|error| Error::step("open the pid namespace of", "init", error))?,
    })
}

/// Joins the namespaces of the process behind `pidfd` whose filesystems only a member can mount,
/// and whose network only a member can configure.
pub fn join_namespaces(assembly: &Assembly<'_>, pidfd: BorrowedFd<'_>) -> Result<()> {
    let mut wanted = flags::NEWIPC | flags::NEWCGROUP;
    if net::has_own_namespace(assembly.net) {
        wanted |= flags::NEWNET;
    }
    join(pidfd, wanted).map_err(|error| Error::step("join the namespaces of", "init", error))
}
