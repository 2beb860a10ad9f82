//! A guest's network: `private` (an own stack on a routed point-to-point interface), `none`, `host`.
//!
//! Everything acts on the network namespace of the calling thread. What has to outlive a command is kept by the kernel
//! with the guest's interface: its group says that it is a Holm guest's and whether others may talk to it, its alias
//! holds the published ports. So the nftables table can be thrown away at any time and made again from the interfaces.

mod dns;
mod error;
mod foreign;
mod forward;
mod guest_files;
mod link;
mod netlink;
mod nft;
mod plan;
mod port;
mod publish;

use std::os::fd::{BorrowedFd, OwnedFd};

pub use error::Error;
pub use foreign::{Blocker, blockers};
pub use forward::let_groups_ping;
pub use guest_files::networkd_unit;
pub use plan::{ADDRESS_MAX, GATEWAY_V4, GATEWAY_V6, plan};

use crate::config::NetMode;
use crate::record::Network;

/// The host's side of a guest's network: the interface pair with `eth0` born in `netns`, routes, rules, published ports.
///
/// Called while the guest's init waits. Leaves nothing behind when it fails.
pub fn attach(plan: &Network, netns: BorrowedFd<'_>) -> Result<(), Error> {
    if plan.mode != NetMode::Private {
        return Ok(());
    }
    forward::switch_on()?;
    let socket = netlink::Socket::route().map_err(|refused| Error::attach(plan, refused))?;
    let resolver = dns::loopback_only();
    // Packets between the guest and 127.0.0.0/8 of the host exist only for these two purposes; see `nft::ruleset`.
    let route_localnet = !plan.publish.is_empty() || resolver.is_some();
    let made = match link::create(&socket, plan, netns, route_localnet) {
        // The interface of a guest that died without being detached has our name and our index. It may go by itself
        // just now.
        Err(refused) if refused.is_duplicate() => {
            link::remove(&socket, &plan.host_if)?;
            link::create(&socket, plan, netns, route_localnet)
        }
        made => made,
    };
    made.map_err(|refused| Error::attach(plan, refused))
        .and_then(|()| nft::ensure(&socket, plan.instance, resolver))
        .and_then(|()| nft::publish(&socket, plan))
        .inspect_err(|_| {
            let _ = link::remove(&socket, &plan.host_if);
        })
}

/// Loopback up, in the calling thread's network namespace, which is new.
pub fn loopback_up() -> rustix::io::Result<()> {
    let mut batch = netlink::Batch::default();
    link::loopback_up(&mut batch);
    netlink::Socket::route()
        .and_then(|socket| socket.execute(&mut batch))
        .map_err(|refused| refused.errno)
}

/// The guest's side of a private network: `eth0`'s addresses and routes.
///
/// The calling thread must be in the guest's network namespace.
pub fn configure_inside(plan: &Network) -> Result<(), Error> {
    let mut batch = netlink::Batch::default();
    forward::quiet_ipv6("eth0");
    link::configure(&mut batch, plan);
    Ok(netlink::Socket::route()?.execute(&mut batch)?)
}

/// Removes what [`attach`] made for a context of an instance; succeeds when there is nothing.
pub fn detach(instance: u8, context: u32) -> Result<(), Error> {
    let name = plan::host_interface(instance, context);
    let socket = netlink::Socket::route()?;
    let found = link::get(&socket, &name)?;
    if found.is_some() {
        link::remove(&socket, &name)?;
    }
    // An interface that vanished with its guest no longer says whether there were ports.
    if found.is_none_or(|link| !link.alias.is_empty()) {
        nft::sweep(&socket, instance)?;
    }
    Ok(())
}

/// Ends the network of a guest whose processes are all dead: takes its published ports out of the rules.
///
/// The interface goes with the guest's network namespace, a little later: removing it here would wait for that, 30 to
/// 50 milliseconds. Should something hold the namespace, the next [`attach`] or [`detach`] removes the interface.
pub fn forget(plan: &Network) -> Result<(), Error> {
    if plan.publish.is_empty() {
        return Ok(());
    }
    let socket = netlink::Socket::route()?;
    link::clear_alias(&socket, &plan.host_if)?;
    nft::sweep(&socket, plan.instance)
}

/// Removes all that an instance without running guests has: interfaces that are left, and the rules.
pub fn give_up(instance: u8) -> Result<(), Error> {
    let socket = netlink::Socket::route()?;
    for context in leftovers(instance)? {
        link::remove(&socket, &plan::host_interface(instance, context))?;
    }
    nft::delete(instance)
}

/// Whether the packet filter has the rules of an instance.
pub fn has_rules(instance: u8) -> Result<bool, Error> {
    nft::is_there(instance)
}

/// Makes the rules of an instance, with the published ports of its guests, if they are missing; says whether they were.
pub fn restore(instance: u8) -> Result<bool, Error> {
    if nft::is_there(instance)? {
        return Ok(false);
    }
    nft::ensure(&netlink::Socket::route()?, instance, dns::loopback_only())?;
    Ok(true)
}

/// Whether a guest's interface is in this network namespace.
pub fn is_attached(plan: &Network) -> Result<bool, Error> {
    Ok(link::get(&netlink::Socket::route()?, &plan.host_if)?.is_some())
}

/// Context ids of an instance that have an interface on this host.
pub fn leftovers(instance: u8) -> Result<Vec<u32>, Error> {
    let prefix = plan::host_prefix(instance);
    let links = link::all(&netlink::Socket::route()?)?;
    Ok(links.iter().filter_map(|link| link.name.strip_prefix(&prefix)?.parse().ok()).collect())
}

/// Text of the guest's /etc/resolv.conf.
pub fn resolv_conf(plan: &Network) -> String {
    dns::render(&plan.dns)
}

/// The socket on which the monitor hears a private guest ask by DHCP, router solicitation and `DHCPv6`, and answers.
pub fn responder(plan: &Network) -> Result<Option<OwnedFd>, Error> {
    if plan.mode != NetMode::Private {
        return Ok(None);
    }
    holm_sys::packet::listen(plan.host_index())
        .map(Some)
        .map_err(|source| Error::Responder { interface: plan.host_if.clone(), source })
}
