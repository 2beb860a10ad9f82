//! A guest's network by its mode: the one place that knows which mode does what.

use std::os::fd::{BorrowedFd, OwnedFd};

use super::dns;
use super::error::Error;
use super::host::Host;
use super::mode::{Files, Mode};
use super::none::NoNetwork;
use super::plan::addresses;
use super::private::{self, Private};
use crate::config::{Net, NetMode};
use crate::record::Network;

fn of(network: &Network) -> &'static dyn Mode {
    match network.mode {
        NetMode::Private => &Private,
        NetMode::None => &NoNetwork,
        NetMode::Host => &Host,
    }
}

/// Plans a guest's network and checks that its published ports are free.
///
/// `instance` is 1 to 27. Name servers, the uplink's MTU and whether there is IPv6 are taken from
/// the host as it is now.
pub fn plan(instance: u8, context: u32, net: &Net) -> Result<Network, Error> {
    let mut network = addresses(instance, context, net)?;
    network.dns = if net.dns.is_empty() { dns::host_servers() } else { net.dns.clone() };
    of(&network).complete(&mut network, net)?;
    Ok(network)
}

/// Whether the guest has a network namespace of its own; without, it shares the host's.
pub fn has_own_namespace(network: &Network) -> bool {
    of(network).has_own_namespace()
}

/// Whether a veth pair connects the guest to the host: [`attach`] then needs the guest's network
/// namespace, and the ruleset protects the pair.
pub fn has_veth(network: &Network) -> bool {
    of(network).has_veth()
}

/// Makes the host's side of a guest's network; `netns` is the guest's network namespace.
///
/// Called while the guest's init waits. Nothing is left behind when it fails.
pub fn attach(network: &Network, netns: BorrowedFd<'_>) -> Result<(), Error> {
    of(network).attach(network, netns)
}

/// Makes the guest's side of its network.
///
/// The calling thread must be in the guest's network namespace.
pub fn configure_inside(network: &Network) -> Result<(), Error> {
    of(network).configure_inside(network)
}

/// Whether the host's side of a guest's network is in this network namespace.
pub fn is_attached(network: &Network) -> Result<bool, Error> {
    of(network).is_attached(network)
}

/// Removes what [`attach`] made; succeeds when there is nothing.
pub fn detach(network: &Network) -> Result<(), Error> {
    of(network).detach(network)
}

/// Removes what a guest without a run record may have left on the host; succeeds when there is
/// nothing.
pub fn detach_unrecorded(instance: u8, context: u32) -> Result<(), Error> {
    private::detach(instance, context)
}

/// Removes what does not disappear by itself when the last process of a guest has ended.
pub fn end(network: &Network) -> Result<(), Error> {
    of(network).end(network)
}

/// Removes everything that an instance without running guests has on the host.
pub fn destroy_instance(instance: u8) -> Result<(), Error> {
    private::destroy(instance)
}

/// The files that tell a guest about its network.
pub fn files(network: &Network) -> Files {
    of(network).files(network)
}

/// The responder's socket, on which a guest's DHCP, `DHCPv6` and router solicitations arrive;
/// `None` for a mode without a responder. It offers [`Network::lease`].
pub fn responder(network: &Network) -> Result<Option<OwnedFd>, Error> {
    of(network).responder(network)
}
