//! The guest's side of its interfaces.

use std::os::fd::BorrowedFd;

use super::names::guest_index;
use crate::net::error::Error;
use crate::net::netlink::{Batch, Socket};
use crate::net::request::Request;
use crate::net::uapi::{IFF_UP, RTM_SETLINK};
use crate::net::{link, route, sysctl};
use crate::record::Network;

/// Brings the interfaces up, and adds the addresses and routers that are set.
///
/// The calling thread must be in the guest's network namespace. `proc` is the guest's.
pub fn configure(network: &Network, proc: BorrowedFd<'_>) -> Result<(), Error> {
    if network.lan.is_empty() {
        return Ok(());
    }
    let mut batch = Batch::default();
    for (at, lan) in network.lan.iter().enumerate() {
        let (name, index) = (network.lan_name(at), guest_index(network, at));
        if !lan.settings.addresses.is_empty() {
            // It would choose addresses that it cannot send from.
            sysctl::set_ipv6(proc, &name, "accept_ra", "0");
        } else if network.has_private_beside() {
            sysctl::set_ipv6(proc, &name, "accept_ra_defrtr", "0");
        }
        batch.message(Request::BringUpLan, RTM_SETLINK, 0, &link::header(index, IFF_UP));
        for (address, length) in &lan.settings.addresses {
            route::add_lan_address(&mut batch, Request::AddLanAddress, index, *address, *length);
        }
    }
    for gateway in &network.gateway {
        let index = interface_to(network, *gateway);
        route::add_route(&mut batch, Request::AddLanGateway, index, None, Some(*gateway));
    }
    Ok(Socket::route()?.execute(&mut batch)?)
}

/// The interface in whose network a router is.
fn interface_to(network: &Network, gateway: std::net::IpAddr) -> u32 {
    let reaches = |lan: &crate::record::Lan| lan.reaches(gateway);
    guest_index(network, network.lan.iter().position(reaches).unwrap_or_default())
}
