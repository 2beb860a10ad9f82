//! A guest's port of a bridge.

use std::io;
use std::os::fd::BorrowedFd;

use holm_bpf::{Map, PORT_PROGRAM, Port};
use holm_sys::bpf::{self, MapKind};

use super::names::{guest_index, host_index, host_name};
use crate::net::classifier::{self, Packets};
use crate::net::error::Error;
use crate::net::link;
use crate::net::netlink::{Batch, CREATE, REPLACE, Refused, Socket};
use crate::net::request::Request;
use crate::net::uapi::{AF_BRIDGE, IFF_UP, IFLA_MASTER, IFLA_PROTINFO, RTM_NEWNEIGH, RTM_SETLINK};
use crate::net::veth::{self, End};
use crate::record::Network;
use crate::step;

/// Makes the veth pair, as a port of the bridge; nothing passes before all of it is done.
pub fn create(network: &Network, at: usize, netns: BorrowedFd<'_>) -> Result<(), Error> {
    let socket = Socket::route()?;
    let name = host_name(network, at);
    let error = |refused| Error::interface(&name, refused);
    veth::replace(&socket, &name, || create_pair(&socket, network, at, netns)).map_err(error)?;
    step::done("lan-pair");
    guard(&socket, network, at)?;
    step::done("lan-guard");
    set_up(&socket, network, at).map_err(error)
}

fn create_pair(
    socket: &Socket,
    network: &Network,
    at: usize,
    netns: BorrowedFd<'_>,
) -> Result<(), Refused> {
    let lan = &network.lan[at];
    // A bridge takes the lowest Ethernet address of its ports for its own, if it has none set.
    let mut host = lan.ethernet;
    host[0] = 0xfe;
    let mut batch = Batch::default();
    let name = (host_name(network, at), network.lan_name(at));
    let host = End { index: host_index(network, at), name: &name.0, ethernet: host };
    let guest = End { index: guest_index(network, at), name: &name.1, ethernet: lan.ethernet };
    veth::create(&mut batch, &host, &guest, lan.mtu, netns);
    batch.number(IFLA_MASTER, lan.parent_index);
    socket.execute(&mut batch)
}

/// Attaches the program that drops what the guest may not send.
fn guard(socket: &Socket, network: &Network, at: usize) -> Result<(), Error> {
    let lan = &network.lan[at];
    let addresses = lan.settings.addresses.iter().map(|(address, _)| *address).collect();
    let value = Port { ethernet: lan.ethernet, addresses }.to_bytes();
    let (name, index) = (host_name(network, at), host_index(network, at));
    bpf::Map::create(Map::Port.name(), MapKind::Hash(1), Map::Port.sizes())
        .and_then(|map| {
            map.update(&[0; 4], &value)?;
            classifier::attach(socket, index, Packets::Received, &PORT_PROGRAM, &map)
        })
        .map_err(|source| fail(name, source))
}

/// The program at a port was not attached, or not found.
pub fn fail(interface: String, source: io::Error) -> Error {
    Error::InterfaceProgram { interface, task: "drops what the guest may not send", source }
}

/// Has the bridge send the port what is for the guest, and brings it up.
fn set_up(socket: &Socket, network: &Network, at: usize) -> Result<(), Refused> {
    const GUARD: u16 = 5;
    const PROTECT: u16 = 6;
    const LEARNING: u16 = 8;
    const UNICAST_FLOOD: u16 = 9;
    const ISOLATED: u16 = 33;
    const NDA_LLADDR: u16 = 2;
    const NUD_NOARP: u8 = 0x40;
    const NTF_MASTER: u8 = 4;
    let index = host_index(network, at);
    let mut batch = Batch::default();
    let mut header = link::header(index, 0);
    header[0] = AF_BRIDGE;
    // The guest has one Ethernet address, which the bridge is told. So it need not learn from what
    // the guest sends, nor send it what may be for anybody.
    batch.message(Request::SetUpPort, RTM_SETLINK, 0, &header).nest(IFLA_PROTINFO, |batch| {
        batch
            .attr(GUARD, &[1])
            .attr(PROTECT, &[1])
            .attr(LEARNING, &[0])
            .attr(UNICAST_FLOOD, &[0])
            .attr(ISOLATED, &[u8::from(!network.peers)]);
    });
    let mut header = [AF_BRIDGE, 0, 0, 0, 0, 0, 0, 0, NUD_NOARP, 0, NTF_MASTER, 0];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    batch
        .message(Request::AddToBridge, RTM_NEWNEIGH, CREATE | REPLACE, &header)
        .attr(NDA_LLADDR, &network.lan[at].ethernet);
    batch.message(Request::BringUpHostEnd, RTM_SETLINK, 0, &link::header(index, IFF_UP));
    socket.execute(&mut batch)
}
