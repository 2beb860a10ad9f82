//! Addresses, routes and neighbours: the messages that add them, and the route to the outside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rustix::io::Errno;

use super::link;
use super::netlink::{Batch, CREATE, EXCL, REPLACE, Refused, Socket, find, number};
use super::request::Request;
use super::uapi::{
    AF_INET, AF_INET6, RTM_DELADDR, RTM_GETROUTE, RTM_NEWADDR, RTM_NEWNEIGH, RTM_NEWROUTE,
};

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { AF_INET } else { AF_INET6 }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn full_length(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Adds an address to an interface, without duplicate address detection: the link has no other
/// hosts.
pub fn add_address(batch: &mut Batch, request: Request, index: u32, address: IpAddr, prefix: u8) {
    const IFA_ADDRESS: u16 = 1;
    const IFA_LOCAL: u16 = 2;
    const IFA_F_NODAD: u8 = 2;
    const SCOPE_LINK: u8 = 253;
    let link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let flags = if address.is_ipv6() { IFA_F_NODAD } else { 0 };
    let mut header =
        [family(address), prefix, flags, if link_local { SCOPE_LINK } else { 0 }, 0, 0, 0, 0];
    header[4..].copy_from_slice(&index.to_ne_bytes());
    let octets = octets(address);
    batch
        .message(request, RTM_NEWADDR, CREATE | EXCL, &header)
        .attr(IFA_LOCAL, &octets)
        .attr(IFA_ADDRESS, &octets);
}

/// Adds an address in a network with other hosts. There is no duplicate address detection either:
/// servers shall be able to bind to it from the beginning.
pub fn add_lan_address(
    batch: &mut Batch,
    request: Request,
    index: u32,
    address: IpAddr,
    prefix: u8,
) {
    const IFA_BROADCAST: u16 = 4;
    add_address(batch, request, index, address, prefix);
    if let IpAddr::V4(v4) = address
        && let Some(rest) = u32::MAX.checked_shr(prefix.into()).filter(|_| prefix < 31)
    {
        batch.attr(IFA_BROADCAST, &(v4.to_bits() | rest).to_be_bytes());
    }
}

/// Adds an address that is a native guest's: the host itself does not choose it as a source.
pub fn add_native_address(batch: &mut Batch, request: Request, index: u32, address: IpAddr) {
    const IFA_CACHEINFO: u16 = 6;
    const FOREVER: u32 = u32::MAX;
    add_address(batch, request, index, address, full_length(address));
    if address.is_ipv6() {
        // `struct ifa_cacheinfo`: preferred for no time, so deprecated from the beginning. IPv4
        // chooses the first address of an interface anyway.
        batch.attr(IFA_CACHEINFO, &[0, FOREVER, 0, 0].map(u32::to_ne_bytes).concat());
    }
}

/// Removes an address of a native guest from an interface.
pub fn remove_native_address(batch: &mut Batch, request: Request, index: u32, address: IpAddr) {
    const IFA_LOCAL: u16 = 2;
    let mut header = [family(address), full_length(address), 0, 0, 0, 0, 0, 0];
    header[4..].copy_from_slice(&index.to_ne_bytes());
    batch.message(request, RTM_DELADDR, 0, &header).attr(IFA_LOCAL, &octets(address));
}

/// Adds a route through an interface: to one address on the link, or, if `to` is `None`, the
/// default route by `gateway`.
pub fn add_route(
    batch: &mut Batch,
    request: Request,
    index: u32,
    to: Option<IpAddr>,
    gateway: Option<IpAddr>,
) {
    const RTA_DST: u16 = 1;
    const RTA_OIF: u16 = 4;
    const RTA_GATEWAY: u16 = 5;
    const TABLE_MAIN: u8 = 254;
    const PROTO_STATIC: u8 = 4;
    const SCOPE_LINK: u8 = 253;
    const UNICAST: u8 = 1;
    const ONLINK: u32 = 4;
    let Some(address) = to.or(gateway) else { return };
    let length = to.map_or(0, full_length);
    let scope = if gateway.is_none() && address.is_ipv4() { SCOPE_LINK } else { 0 };
    let mut header =
        [family(address), length, 0, 0, TABLE_MAIN, PROTO_STATIC, scope, UNICAST, 0, 0, 0, 0];
    if gateway.is_some() {
        header[8..].copy_from_slice(&ONLINK.to_ne_bytes());
    }
    batch.message(request, RTM_NEWROUTE, CREATE | EXCL, &header).number(RTA_OIF, index);
    if let Some(to) = to {
        batch.attr(RTA_DST, &octets(to));
    }
    if let Some(gateway) = gateway {
        batch.attr(RTA_GATEWAY, &octets(gateway));
    }
}

/// Adds a permanent neighbour entry: which Ethernet address an address on the link has.
///
/// The kernel's neighbour table is the whole machine's, and a guest can fill it from its own
/// network namespace. A full table refuses new entries, except permanent ones.
pub fn add_neighbour(
    batch: &mut Batch,
    request: Request,
    index: u32,
    address: IpAddr,
    ethernet: [u8; 6],
) {
    const NDA_DST: u16 = 1;
    const NDA_LLADDR: u16 = 2;
    const NUD_PERMANENT: u16 = 0x80;
    let mut header = [family(address), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..10].copy_from_slice(&NUD_PERMANENT.to_ne_bytes());
    batch
        .message(request, RTM_NEWNEIGH, CREATE | REPLACE, &header)
        .attr(NDA_DST, &octets(address))
        .attr(NDA_LLADDR, &ethernet);
}

/// The MTU in bytes of the interface that leads outside; `None` without such a route.
pub fn uplink_mtu(socket: &Socket) -> Result<Option<u32>, Refused> {
    match uplink(socket)? {
        Some(index) => link::mtu(socket, index),
        None => Ok(None),
    }
}

/// The index of the interface that leads outside; `None` without such a route.
pub fn uplink(socket: &Socket) -> Result<Option<u32>, Refused> {
    // A root name server of each family, which no private route covers. This only queries the
    // routing table and sends nothing.
    const OUTSIDE: [IpAddr; 2] = [
        IpAddr::V4(Ipv4Addr::new(198, 41, 0, 4)),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0x503, 0xba3e, 0, 0, 0, 2, 0x30)),
    ];
    for address in OUTSIDE {
        if let Some(index) = route_to(socket, address)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// The index of the interface through which packets to an address leave; `None` without a route.
fn route_to(socket: &Socket, address: IpAddr) -> Result<Option<u32>, Refused> {
    let mut index = None;
    find_route(socket, Request::FindUplink, address, 0, |payload| {
        index = outgoing_interface(payload);
    })?;
    Ok(index)
}

/// Whether the host has a route to this address alone: it is a guest's, or the host's own.
pub fn is_taken(socket: &Socket, address: IpAddr) -> Result<bool, Refused> {
    let mut taken = false;
    find_route(socket, Request::FindRoute, address, FIB_MATCH, |payload| {
        taken = payload.get(1) == Some(&full_length(address));
    })?;
    Ok(taken)
}

/// Whether an address is the host's own: it delivers packets to it to itself. Routes to guests are
/// of another type.
pub fn is_local(socket: &Socket, address: IpAddr) -> Result<bool, Refused> {
    Ok(local_interface(socket, address)?.is_some())
}

/// The index of the interface that has an address of the host's own; `None` if it has none such.
pub fn local_interface(socket: &Socket, address: IpAddr) -> Result<Option<u32>, Refused> {
    const LOCAL: u8 = 2;
    let mut index = None;
    find_route(socket, Request::FindRoute, address, FIB_MATCH, |payload| {
        if payload.get(7) == Some(&LOCAL) {
            index = outgoing_interface(payload);
        }
    })?;
    Ok(index)
}

/// The interface in a message about a route.
fn outgoing_interface(payload: &[u8]) -> Option<u32> {
    const RTA_OIF: u16 = 4;
    find(payload.get(12..)?, RTA_OIF).and_then(number)
}

/// Asks for the entry of the routing table itself.
const FIB_MATCH: u32 = 0x2000;

/// Asks for the route to an address; nothing is reported if there is none.
fn find_route(
    socket: &Socket,
    request: Request,
    address: IpAddr,
    flags: u32,
    report: impl FnMut(&[u8]),
) -> Result<(), Refused> {
    const RTA_DST: u16 = 1;
    let mut report = report;
    let mut header = [family(address), full_length(address), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    header[8..].copy_from_slice(&flags.to_ne_bytes());
    let mut batch = Batch::default();
    batch.message(request, RTM_GETROUTE, 0, &header).attr(RTA_DST, &octets(address));
    match socket.query(&batch, |_, payload| report(payload)) {
        Err(Refused {
            errno:
                Errno::NETUNREACH
                | Errno::HOSTUNREACH
                | Errno::AFNOSUPPORT
                | Errno::OPNOTSUPP
                | Errno::INVAL,
            ..
        }) => Ok(()),
        asked => asked,
    }
}
