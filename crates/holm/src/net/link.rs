//! The veth pair of a private guest: its messages, on the host's side and inside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use super::netlink::{Attributes, Batch, CREATE, DUMP, EXCL, Refused, Socket, find, number, text};
use super::publish::Published;
use crate::record::Network;

const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
const RTM_SETLINK: u16 = 19;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINKINFO: u16 = 18;
const IFLA_IFALIAS: u16 = 20;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_GROUP: u16 = 27;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_EXT_MASK: u16 = 29;
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;

const IFF_UP: u32 = 1;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// A link as a dump shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub name: String,
    pub alias: String,
}

impl Link {
    /// The guest's published ports.
    pub fn published(&self) -> Published {
        Published::parse(&self.alias)
    }
}

impl Refused {
    /// Whether the pair could not be made because its name or index is taken.
    pub fn is_duplicate(&self) -> bool {
        self.what == MAKING && matches!(self.errno, Errno::EXIST | Errno::BUSY)
    }
}

const MAKING: &str = "making the interface pair";

/// `ifinfomsg`.
fn link_header(index: u32, flags: u32) -> [u8; 16] {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..16].copy_from_slice(&flags.to_ne_bytes());
    header
}

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

/// An address on a link, without duplicate address detection: nobody else is on the wire.
fn add_address(batch: &mut Batch, what: &'static str, index: u32, address: IpAddr, prefix: u8) {
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
        .message(what, RTM_NEWADDR, CREATE | EXCL, &header)
        .attr(IFA_LOCAL, &octets)
        .attr(IFA_ADDRESS, &octets);
}

/// A route through a link: to one address directly, or (`to` is `None`) everything by `gateway`.
fn add_route(
    batch: &mut Batch,
    what: &'static str,
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
    batch.message(what, RTM_NEWROUTE, CREATE | EXCL, &header).number(RTA_OIF, index);
    if let Some(to) = to {
        batch.attr(RTA_DST, &octets(to));
    }
    if let Some(gateway) = gateway {
        batch.attr(RTA_GATEWAY, &octets(gateway));
    }
}

/// Turns off the kernel's own link-local address: ours is set explicitly, at once usable.
fn no_generated_address(batch: &mut Batch, route_localnet: bool, v6: bool) {
    const INET_CONF: u16 = 1;
    const ROUTE_LOCALNET: u16 = 26;
    const ADDR_GEN_MODE: u16 = 8;
    const MODE_NONE: u8 = 1;
    batch.nest(IFLA_AF_SPEC, |batch| {
        if route_localnet {
            batch.nest(AF_INET.into(), |batch| {
                batch.nest(INET_CONF, |batch| {
                    batch.number(ROUTE_LOCALNET, 1);
                });
            });
        }
        if v6 {
            batch.nest(AF_INET6.into(), |batch| {
                batch.attr(ADDR_GEN_MODE, &[MODE_NONE]);
            });
        }
    });
}

/// Makes the pair, the host's addresses on it and the routes to the guest, in one exchange with the kernel.
pub fn create(
    socket: &Socket,
    plan: &Network,
    netns: BorrowedFd<'_>,
    route_localnet: bool,
) -> Result<(), Refused> {
    let mut batch = Batch::default();
    let index = plan.host_index();
    batch
        .message(MAKING, RTM_NEWLINK, CREATE | EXCL, &link_header(index, 0))
        .text(IFLA_IFNAME, &plan.host_if)
        .number(IFLA_MTU, plan.mtu)
        .attr(IFLA_ADDRESS, &plan.host_mac())
        .number(IFLA_GROUP, plan.group())
        .number(IFLA_NUM_TX_QUEUES, 1)
        .number(IFLA_NUM_RX_QUEUES, 1)
        .nest(IFLA_LINKINFO, |batch| {
            batch.attr(IFLA_INFO_KIND, b"veth").nest(IFLA_INFO_DATA, |batch| {
                batch.nest(VETH_INFO_PEER, |batch| {
                    batch
                        .raw(&link_header(plan.guest_index(), 0))
                        .text(IFLA_IFNAME, "eth0")
                        .number(IFLA_MTU, plan.mtu)
                        .attr(IFLA_ADDRESS, &plan.guest_mac())
                        .number(IFLA_NUM_TX_QUEUES, 1)
                        .number(IFLA_NUM_RX_QUEUES, 1)
                        .number(IFLA_NET_NS_FD, netns.as_raw_fd().cast_unsigned());
                });
            });
        });
    batch.message("setting up the host's interface", RTM_SETLINK, 0, &link_header(index, 0));
    if !plan.publish.is_empty() {
        batch.text(IFLA_IFALIAS, &Published::of(plan).alias());
    }
    no_generated_address(&mut batch, route_localnet, plan.guest_v6.is_some());
    batch.message("switching on the host's interface", RTM_SETLINK, 0, &link_header(index, IFF_UP));
    add_address(
        &mut batch,
        "setting the gateway's IPv4 address",
        index,
        plan.gateway_v4.into(),
        32,
    );
    add_route(
        &mut batch,
        "routing the guest's IPv4 address",
        index,
        Some(plan.guest_v4.into()),
        None,
    );
    if let Some(guest_v6) = plan.guest_v6 {
        add_address(
            &mut batch,
            "setting the gateway's IPv6 address",
            index,
            plan.gateway_v6.into(),
            64,
        );
        add_route(
            &mut batch,
            "routing the guest's IPv6 address",
            index,
            Some(guest_v6.into()),
            None,
        );
    }
    socket.execute(&mut batch)
}

/// Switches on the loopback interface of the current network namespace.
pub fn loopback_up(batch: &mut Batch) {
    // The loopback interface of every namespace has index 1.
    batch.message("switching on the loopback interface", RTM_SETLINK, 0, &link_header(1, IFF_UP));
}

/// Addresses and routes of `eth0`, in the guest's namespace.
pub fn configure(batch: &mut Batch, plan: &Network) {
    let index = plan.guest_index();
    if plan.guest_v6.is_some() {
        batch.message("setting up eth0", RTM_SETLINK, 0, &link_header(index, 0));
        no_generated_address(batch, false, true);
    }
    batch.message("switching on eth0", RTM_SETLINK, 0, &link_header(index, IFF_UP));
    let (gateway_v4, gateway_v6): (IpAddr, IpAddr) =
        (plan.gateway_v4.into(), plan.gateway_v6.into());
    add_address(batch, "setting eth0's IPv4 address", index, plan.guest_v4.into(), 32);
    add_route(batch, "routing to the IPv4 gateway", index, Some(gateway_v4), None);
    add_route(batch, "setting the IPv4 default route", index, None, Some(gateway_v4));
    if let Some(guest_v6) = plan.guest_v6 {
        add_address(
            batch,
            "setting eth0's link-local address",
            index,
            plan.guest_link_local().into(),
            64,
        );
        add_address(batch, "setting eth0's IPv6 address", index, guest_v6.into(), 128);
        add_route(batch, "setting the IPv6 default route", index, None, Some(gateway_v6));
    }
}

/// Removes a link by name; `false` when there was none.
pub fn remove(socket: &Socket, name: &str) -> Result<bool, Refused> {
    let mut batch = Batch::default();
    batch
        .message("removing the host's interface", RTM_DELLINK, 0, &link_header(0, 0))
        .text(IFLA_IFNAME, name);
    match socket.execute(&mut batch) {
        Ok(()) => Ok(true),
        Err(refused) if refused.errno == Errno::NODEV => Ok(false),
        Err(refused) => Err(refused),
    }
}

/// Clears a link's alias, if the link is there.
pub fn clear_alias(socket: &Socket, name: &str) -> Result<(), Refused> {
    let mut batch = Batch::default();
    batch
        .message("clearing the host's interface's alias", RTM_SETLINK, 0, &link_header(0, 0))
        .text(IFLA_IFNAME, name)
        .attr(IFLA_IFALIAS, b"");
    match socket.execute(&mut batch) {
        Err(refused) if refused.errno != Errno::NODEV => Err(refused),
        _ => Ok(()),
    }
}

const SKIP_STATISTICS: u32 = 1 << 3;

/// One link by name, `None` when there is none.
pub fn get(socket: &Socket, name: &str) -> Result<Option<Link>, Refused> {
    let mut batch = Batch::default();
    batch
        .message("looking for an interface", RTM_GETLINK, 0, &link_header(0, 0))
        .text(IFLA_IFNAME, name)
        .number(IFLA_EXT_MASK, SKIP_STATISTICS);
    let mut found = None;
    match socket.ask(&batch, |kind, payload| found = parse(kind, payload)) {
        Ok(()) => Ok(found),
        Err(refused) if refused.errno == Errno::NODEV => Ok(None),
        Err(refused) => Err(refused),
    }
}

/// All veth links of this network namespace.
pub fn all(socket: &Socket) -> Result<Vec<Link>, Refused> {
    let mut batch = Batch::default();
    batch
        .message("listing interfaces", RTM_GETLINK, DUMP, &link_header(0, 0))
        .number(IFLA_EXT_MASK, SKIP_STATISTICS)
        .nest(IFLA_LINKINFO, |batch| {
            batch.attr(IFLA_INFO_KIND, b"veth");
        });
    let mut links = Vec::new();
    socket.ask(&batch, |kind, payload| links.extend(parse(kind, payload)))?;
    Ok(links)
}

fn parse(kind: u16, payload: &[u8]) -> Option<Link> {
    let attributes = payload.get(16..).filter(|_| kind == RTM_NEWLINK)?;
    let name = text(find(attributes, IFLA_IFNAME)?)?.to_owned();
    let alias = find(attributes, IFLA_IFALIAS).and_then(text).unwrap_or_default().to_owned();
    Some(Link { name, alias })
}

/// MTU of the interface that leads outside, bytes; `None` without a route there.
pub fn uplink_mtu(socket: &Socket) -> Result<Option<u32>, Refused> {
    // Asked of the routing table, nothing is sent: a root name server of each family, which no private route covers.
    const OUTSIDE: [IpAddr; 2] = [
        IpAddr::V4(Ipv4Addr::new(198, 41, 0, 4)),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0x503, 0xba3e, 0, 0, 0, 2, 0x30)),
    ];
    for address in OUTSIDE {
        if let Some(index) = route_to(socket, address)? {
            let mut batch = Batch::default();
            batch
                .message("asking for the uplink's MTU", RTM_GETLINK, 0, &link_header(index, 0))
                .number(IFLA_EXT_MASK, SKIP_STATISTICS);
            let mut mtu = None;
            socket.ask(&batch, |_, payload| {
                mtu = payload
                    .get(16..)
                    .and_then(|attributes| find(attributes, IFLA_MTU))
                    .and_then(number);
            })?;
            return Ok(mtu);
        }
    }
    Ok(None)
}

/// Index of the interface that packets to an address leave by; `None` without a route.
fn route_to(socket: &Socket, address: IpAddr) -> Result<Option<u32>, Refused> {
    const RTA_DST: u16 = 1;
    const RTA_OIF: u16 = 4;
    let header = [family(address), full_length(address), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut batch = Batch::default();
    batch
        .message("asking for the uplink", RTM_GETROUTE, 0, &header)
        .attr(RTA_DST, &octets(address));
    let mut index = None;
    match socket.ask(&batch, |_, payload| {
        index = Attributes(payload.get(12..).unwrap_or_default())
            .find(|(kind, _)| *kind == RTA_OIF)
            .and_then(|(_, value)| number(value));
    }) {
        Ok(()) => Ok(index),
        Err(Refused {
            errno:
                Errno::NETUNREACH
                | Errno::HOSTUNREACH
                | Errno::AFNOSUPPORT
                | Errno::OPNOTSUPP
                | Errno::INVAL,
            ..
        }) => Ok(None),
        Err(refused) => Err(refused),
    }
}
