//! A private guest's side of the host: attaching and detaching it, and what an instance has on the host.

use std::os::fd::BorrowedFd;

use super::{elements, forwarding, table, veth};
use crate::net::addresses::{host_interface, host_prefix};
use crate::net::error::Error;
use crate::net::{dns, link, netlink};
use crate::record::Network;

/// The host's side of a guest's network: the interface pair with `eth0` born in `netns`, routes, rules, published ports.
///
/// Called while the guest's init waits. Leaves nothing behind when it fails.
pub fn attach(network: &Network, netns: BorrowedFd<'_>) -> Result<(), Error> {
    forwarding::switch_on()?;
    let socket = netlink::Socket::route().map_err(|refused| Error::attach(network, refused))?;
    let resolver = dns::loopback_only();
    // Packets between the guest and 127.0.0.0/8 of the host exist only for these two purposes; see `ruleset::ruleset`.
    let route_localnet = !network.publish.is_empty() || resolver.is_some();
    let made = match veth::create(&socket, network, netns, route_localnet) {
        // The interface of a guest that died without being detached has our name and our index. It may go by itself
        // just now.
        Err(refused) if refused.is_duplicate() => {
            link::remove(&socket, &network.host_if)?;
            veth::create(&socket, network, netns, route_localnet)
        }
        made => made,
    };
    made.map_err(|refused| Error::attach(network, refused))
        .and_then(|()| table::ensure(&socket, network.instance, resolver))
        .and_then(|()| elements::publish(&socket, network))
        .inspect_err(|_| {
            let _ = link::remove(&socket, &network.host_if);
        })
}

/// The guest's side: `eth0`'s addresses and routes.
///
/// The calling thread must be in the guest's network namespace.
pub fn configure_inside(network: &Network) -> Result<(), Error> {
    let mut batch = netlink::Batch::default();
    forwarding::quiet_ipv6("eth0");
    veth::configure(&mut batch, network);
    Ok(netlink::Socket::route()?.execute(&mut batch)?)
}

/// Removes what [`attach`] made for a context of an instance; succeeds when there is nothing.
pub fn detach(instance: u8, context: u32) -> Result<(), Error> {
    let name = host_interface(instance, context);
    let socket = netlink::Socket::route()?;
    let found = link::get(&socket, &name)?;
    if found.is_some() {
        link::remove(&socket, &name)?;
    }
    // An interface that vanished with its guest no longer says whether there were ports.
    if found.is_none_or(|link| !link.alias.is_empty()) {
        elements::sweep(&socket, instance)?;
    }
    Ok(())
}

/// Ends the network of a guest whose processes are all dead: takes its published ports out of the rules.
///
/// The interface goes with the guest's network namespace, a little later: removing it here would wait for that, 30 to
/// 50 milliseconds. Should something hold the namespace, the next [`attach`] or [`detach`] removes the interface.
pub fn unpublish(network: &Network) -> Result<(), Error> {
    if network.publish.is_empty() {
        return Ok(());
    }
    let socket = netlink::Socket::route()?;
    link::clear_alias(&socket, &network.host_if)?;
    elements::sweep(&socket, network.instance)
}

/// Removes all that an instance without running guests has: interfaces that are left, and the rules.
pub fn destroy(instance: u8) -> Result<(), Error> {
    let socket = netlink::Socket::route()?;
    for context in leftovers(instance)? {
        link::remove(&socket, &host_interface(instance, context))?;
    }
    table::delete(instance)
}

/// Whether the packet filter has the rules of an instance.
pub fn has_rules(instance: u8) -> Result<bool, Error> {
    table::is_there(instance)
}

/// Makes the rules of an instance, with the published ports of its guests, if they are missing; says whether they were.
pub fn restore_rules(instance: u8) -> Result<bool, Error> {
    if table::is_there(instance)? {
        return Ok(false);
    }
    table::ensure(&netlink::Socket::route()?, instance, dns::loopback_only())?;
    Ok(true)
}

/// Whether a guest's interface is in this network namespace.
pub fn is_attached(network: &Network) -> Result<bool, Error> {
    Ok(link::get(&netlink::Socket::route()?, &network.host_if)?.is_some())
}

/// Context ids of an instance that have an interface on this host.
pub fn leftovers(instance: u8) -> Result<Vec<u32>, Error> {
    let prefix = host_prefix(instance);
    let links = link::all(&netlink::Socket::route()?)?;
    Ok(links.iter().filter_map(|link| link.name.strip_prefix(&prefix)?.parse().ok()).collect())
}
