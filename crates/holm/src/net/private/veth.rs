//! Creating and configuring a private guest's veth pair, on the host's side and inside.

use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use crate::net::link;
use crate::net::netlink::{Batch, Refused, Socket};
use crate::net::published::Published;
use crate::net::request::Request;
use crate::net::route::{add_address, add_neighbour, add_route};
use crate::net::uapi::{
    AF_INET, AF_INET6, IFF_UP, IFLA_AF_SPEC, IFLA_GROUP, IFLA_IFALIAS, RTM_SETLINK,
};
use crate::net::veth::{self, End};
use crate::record::Network;

/// Configures an interface: no link-local address from the kernel, because Holm sets one that is
/// usable at once; and packets to and from 127.0.0.0/8, if `route_localnet`.
fn configure_interface(batch: &mut Batch, route_localnet: bool, v6: bool) {
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

/// Creates the pair, with the host's addresses and the routes to the guest, in one batch.
pub fn create(
    socket: &Socket,
    network: &Network,
    netns: BorrowedFd<'_>,
    route_localnet: bool,
) -> Result<(), Refused> {
    let mut batch = Batch::default();
    let index = network.host_index();
    let host = End { index, name: &network.host_if, ethernet: network.host_mac() };
    let guest = End { index: network.guest_index(), name: "eth0", ethernet: network.guest_mac() };
    veth::create(&mut batch, &host, &guest, network.mtu, netns);
    batch.number(IFLA_GROUP, network.group());
    batch.message(Request::SetUpHostEnd, RTM_SETLINK, 0, &link::header(index, 0));
    if !network.publish.is_empty() {
        batch.text(IFLA_IFALIAS, &Published::of(network).alias());
    }
    configure_interface(&mut batch, route_localnet, network.guest_v6.is_some());
    batch.message(Request::BringUpHostEnd, RTM_SETLINK, 0, &link::header(index, IFF_UP));
    add_address(&mut batch, Request::AddGatewayV4, index, network.gateway_v4.into(), 32);
    add_route(&mut batch, Request::RouteGuestV4, index, Some(network.guest_v4.into()), None);
    if let Some(guest_v6) = network.guest_v6 {
        add_address(&mut batch, Request::AddGatewayV6, index, network.gateway_v6.into(), 64);
        add_route(&mut batch, Request::RouteGuestV6, index, Some(guest_v6.into()), None);
    }
    add_guest_neighbours(&mut batch, network);
    socket.execute(&mut batch)
}

/// The neighbour entries of the guest's addresses, on the host.
fn add_guest_neighbours(batch: &mut Batch, network: &Network) {
    let (index, mac) = (network.host_index(), network.guest_mac());
    add_neighbour(batch, Request::NeighbourGuestV4, index, network.guest_v4.into(), mac);
    if let Some(guest_v6) = network.guest_v6 {
        let link_local = network.guest_link_local().into();
        add_neighbour(batch, Request::NeighbourGuestV6, index, guest_v6.into(), mac);
        add_neighbour(batch, Request::NeighbourGuestLinkLocal, index, link_local, mac);
    }
}

/// Configures `eth0`, in the guest's network namespace.
pub fn configure(batch: &mut Batch, network: &Network) {
    let index = network.guest_index();
    if network.guest_v6.is_some() {
        batch.message(Request::SetUpEth0, RTM_SETLINK, 0, &link::header(index, 0));
        configure_interface(batch, false, true);
    }
    batch.message(Request::BringUpEth0, RTM_SETLINK, 0, &link::header(index, IFF_UP));
    let (gateway_v4, gateway_v6): (IpAddr, IpAddr) =
        (network.gateway_v4.into(), network.gateway_v6.into());
    add_address(batch, Request::AddGuestV4, index, network.guest_v4.into(), 32);
    add_route(batch, Request::RouteGatewayV4, index, Some(gateway_v4), None);
    add_route(batch, Request::DefaultRouteV4, index, None, Some(gateway_v4));
    let mac = network.host_mac();
    add_neighbour(batch, Request::NeighbourGatewayV4, index, gateway_v4, mac);
    if let Some(guest_v6) = network.guest_v6 {
        add_address(batch, Request::AddLinkLocal, index, network.guest_link_local().into(), 64);
        add_address(batch, Request::AddGuestV6, index, guest_v6.into(), 128);
        add_route(batch, Request::DefaultRouteV6, index, None, Some(gateway_v6));
        add_neighbour(batch, Request::NeighbourGatewayV6, index, gateway_v6, mac);
    }
}
