//! The host's side of private networks.

use std::os::fd::BorrowedFd;

use super::{elements, forwarding, table, veth};
use crate::net::addresses::{host_interface, host_prefix};
use crate::net::error::Error;
use crate::net::shaping::receive_at_most;
use crate::net::veth::replace;
use crate::net::{dns, link, netlink};
use crate::record::{Network, host_index};

/// Makes the veth pair, with `eth0` in `netns`, and the routes, ruleset and published ports.
///
/// Called while the guest's init waits. Undoes itself if it fails.
pub fn attach(network: &Network, netns: BorrowedFd<'_>) -> Result<(), Error> {
    forwarding::enable()?;
    let socket = netlink::Socket::route().map_err(|refused| Error::attach(network, refused))?;
    let resolver = dns::resolver()?;
    // Only these two need packets between the guest and the host's 127.0.0.0/8; see `ruleset`.
    let route_localnet = !network.publish.is_empty() || resolver.loopback.is_some();
    let create = || veth::create(&socket, network, netns, route_localnet);
    replace(&socket, &network.host_if, create)
        .map_err(|refused| Error::attach(network, refused))
        .and_then(|()| table::ensure(&socket, network.instance, &resolver))
        .and_then(|()| elements::begin_counts(network))
        .and_then(|()| elements::publish(&socket, network))
        .and_then(|()| if network.shaping.is_some() { reshape(network) } else { Ok(()) })
        .inspect_err(|_| {
            let _ = link::remove(&socket, &network.host_if);
        })
}

/// Marks the packets of a guest with its class on the uplink, and bounds what it receives, or no
/// longer. The ruleset may be that of another version of Holm.
pub fn reshape(network: &Network) -> Result<(), Error> {
    let shaping = network.shaping.as_ref();
    if shaping.is_some() {
        table::ensure(&netlink::Socket::route()?, network.instance, &dns::resolver()?)?;
    }
    elements::tag(network.instance, network.context, shaping.is_some())?;
    receive_at_most(network.host_index(), shaping.and_then(|shaping| shaping.cap))
}

/// Configures `eth0`.
///
/// The calling thread must be in the guest's network namespace. `proc` is the guest's.
pub fn configure_inside(network: &Network, proc: BorrowedFd<'_>) -> Result<(), Error> {
    let mut batch = netlink::Batch::default();
    forwarding::disable_ipv6_discovery(proc, "eth0");
    veth::configure(&mut batch, network);
    Ok(netlink::Socket::route()?.execute(&mut batch)?)
}

/// Removes what [`attach`] has made for a context id; succeeds if there is nothing to remove.
pub fn detach(instance: u8, context: u32) -> Result<(), Error> {
    let name = host_interface(instance, context);
    let socket = netlink::Socket::route()?;
    let found = link::get(&socket, &name)?;
    if found.is_some() {
        link::remove(&socket, &name)?;
    }
    // The alias tells whether ports were published; without the interface it is not known.
    if found.is_none_or(|link| !link.alias.is_empty()) {
        elements::remove_stale(&socket, instance)?;
    }
    elements::tag(instance, context, false)
}

/// Removes the published ports, and the mark of packets, of a guest whose processes have all ended.
///
/// The interface disappears with the guest's network namespace 30 to 50 milliseconds later;
/// removing it here would wait for that. If something keeps the namespace alive, the next
/// [`attach`] or [`detach`] removes the interface.
pub fn unpublish(network: &Network) -> Result<(), Error> {
    if network.shaping.is_some() {
        elements::tag(network.instance, network.context, false)?;
    }
    if network.publish.is_empty() {
        return Ok(());
    }
    elements::unpublish(network)?;
    // Last, as it keeps others from publishing the ports.
    Ok(link::clear_alias(&netlink::Socket::route()?, &network.host_if)?)
}

/// Removes the leftover interfaces and the ruleset of an instance without running guests.
pub fn destroy(instance: u8) -> Result<(), Error> {
    let socket = netlink::Socket::route()?;
    for context in attached_contexts(instance)? {
        link::remove(&socket, &host_interface(instance, context))?;
    }
    table::delete(instance)
}

/// Whether the ruleset of an instance is loaded.
pub fn has_ruleset(instance: u8) -> Result<bool, Error> {
    table::exists(&netlink::Socket::netfilter()?, instance)
}

/// Loads the ruleset of an instance, with the published ports of its guests, if it is missing.
/// Returns whether it was.
pub fn restore_ruleset(instance: u8) -> Result<bool, Error> {
    if has_ruleset(instance)? {
        return Ok(false);
    }
    table::ensure(&netlink::Socket::route()?, instance, &dns::resolver()?)?;
    Ok(true)
}

/// Whether a guest's interface is in this network namespace.
pub fn is_attached(network: &Network) -> Result<bool, Error> {
    Ok(link::get(&netlink::Socket::route()?, &network.host_if)?.is_some())
}

/// The context ids of an instance that have an interface on this host.
pub fn attached_contexts(instance: u8) -> Result<Vec<u32>, Error> {
    let prefix = host_prefix(instance);
    let links = link::all(&netlink::Socket::route()?)?;
    Ok(links.iter().filter_map(|link| link.name.strip_prefix(&prefix)?.parse().ok()).collect())
}

/// The indexes of these interfaces.
pub fn interfaces(instance: u8) -> Result<Vec<u32>, Error> {
    let contexts = attached_contexts(instance)?;
    Ok(contexts.into_iter().map(|context| host_index(instance, context)).collect())
}
