//! `net.lan`: interfaces of a guest in networks of the host's, beside `eth0` of a private guest, or
//! alone with `net.mode = "none"`.
//!
//! ```text
//! ethK                  in the guest, from eth1 on beside the private one, else from eth0
//!   bridge:br0          a veth pair; its other end, lanN-C-K on the host (N the instance number, C
//!                       the context id), is a port of br0, which has holm-bpf's `port` attached
//!   macvlan:eth0        a macvlan in the guest's network namespace alone
//! ```
//!
//! What is at a port on the host, flags, forwarding entry, program and map, disappears with it, and
//! it does with the guest's network namespace.

mod configure;
mod macvlan;
mod names;
mod networkd;
mod plan;
mod port;
mod traffic;

use std::os::fd::BorrowedFd;

pub use configure::configure;
pub use networkd::networkd_units;
pub use plan::plan;
pub use traffic::traffic;

use super::error::Error;
use super::link;
use super::netlink::Socket;
use crate::config::LanKind;
use crate::record::Network;
use names::prefix;

/// Makes the interfaces, with their ends for the guest in `netns`. Undoes itself if it fails.
pub fn attach(network: &Network, netns: BorrowedFd<'_>) -> Result<(), Error> {
    let each = |at: usize| match network.lan[at].settings.kind {
        LanKind::Bridge => port::create(network, at, netns),
        LanKind::Macvlan => macvlan::create(network, at, netns),
    };
    (0..network.lan.len()).try_for_each(each).inspect_err(|_| {
        let _ = detach(network);
    })
}

/// Removes the ports; succeeds if there is nothing to remove. A macvlan disappears with the guest's
/// network namespace.
pub fn detach(network: &Network) -> Result<(), Error> {
    if network.lan.is_empty() {
        return Ok(());
    }
    let socket = Socket::route()?;
    for name in (0..network.lan.len()).filter_map(|at| network.lan_port(at)) {
        link::remove(&socket, &name)?;
    }
    Ok(())
}

/// Removes the ports of a guest without a run record.
pub fn detach_unrecorded(instance: u8, context: u32) -> Result<(), Error> {
    remove(&format!("{}{context}-", prefix(instance)))
}

/// Removes all ports of an instance without running guests.
pub fn destroy(instance: u8) -> Result<(), Error> {
    remove(&prefix(instance))
}

fn remove(prefix: &str) -> Result<(), Error> {
    // Another interface may have a name that begins so.
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_port =
        |name: &str| name.strip_prefix(prefix).is_some_and(|rest| rest.split('-').all(is_number));
    let socket = Socket::route()?;
    for link in link::all(&socket)?.iter().filter(|link| is_port(&link.name)) {
        link::remove(&socket, &link.name)?;
    }
    Ok(())
}
