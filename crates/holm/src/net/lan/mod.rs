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
    remove(&format!("{}{}-", prefix(network.instance), network.context))
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
    let socket = Socket::route()?;
    for link in link::all(&socket)?.iter().filter(|link| link.name.starts_with(prefix)) {
        link::remove(&socket, &link.name)?;
    }
    Ok(())
}

fn prefix(instance: u8) -> String {
    format!("lan{instance}-")
}

/// The name of the host's end of an interface.
fn host_name(network: &Network, at: usize) -> String {
    format!("{}{}-{at}", prefix(network.instance), network.context)
}

impl Network {
    /// The name in the guest of the interface at this place of [`Network::lan`].
    pub fn lan_name(&self, at: usize) -> String {
        format!("eth{}", at + usize::from(super::has_veth(self)))
    }

    /// The name of its other end on the host; `None` for a macvlan, which has none.
    pub fn lan_port(&self, at: usize) -> Option<String> {
        let is_port = self.lan.get(at).is_some_and(|lan| lan.settings.kind == LanKind::Bridge);
        is_port.then(|| host_name(self, at))
    }
}

/// The index of the host's end of an interface: above those of private guests' interfaces.
fn host_index(network: &Network, at: usize) -> u32 {
    const APART: u32 = 10_000_000;
    // There are few of them.
    network.host_index() + APART * (1 + u32::try_from(at).unwrap_or_default())
}

/// The index of an interface in the guest.
fn guest_index(network: &Network, at: usize) -> u32 {
    host_index(network, at) + (network.guest_index() - network.host_index())
}
