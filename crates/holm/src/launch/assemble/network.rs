use std::os::fd::{AsFd, BorrowedFd};

use holm_sys::process::{Namespace, namespace};

use super::Assembly;
use crate::launch::{Error, Result};
use crate::net;
use crate::rootfs::Mounts;
use crate::step;

/// Makes the veth pairs, each with one end in the network namespace of the process behind `pidfd`.
pub fn attach_network(assembly: &Assembly<'_>, pidfd: BorrowedFd<'_>) -> Result<()> {
    if net::has_host_side(assembly.net) {
        let network = namespace(pidfd, Namespace::Net)
            .map_err(|error| Error::step("open the network namespace of", "init", error))?;
        net::attach(assembly.net, network.as_fd())?;
    }
    step::done("net-attach");
    Ok(())
}

/// Configures addresses and routes inside. The caller has joined the guest's namespaces.
pub fn configure_network(assembly: &Assembly<'_>, mounts: &Mounts<'_>) -> Result<()> {
    let proc = mounts.proc()?;
    if net::has_own_namespace(assembly.net) {
        net::set_ping_group_range(proc.as_fd(), assembly.ids.base, assembly.ids.count);
    }
    net::configure_inside(assembly.net, proc.as_fd())?;
    step::done("net-inside");
    Ok(())
}
