//! A guest's port of a bridge.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use holm_bpf::{Map, PORT_PROGRAM, Port};
use holm_sys::bpf::{self, Hook, MapKind};

use super::names::{guest_index, host_index, host_name};
use crate::net::error::Error;
use crate::net::link;
use crate::net::netlink::{Batch, CREATE, EXCL, REPLACE, Refused, Socket};
use crate::net::request::Request;
use crate::net::uapi::{
    AF_BRIDGE, IFF_UP, IFLA_ADDRESS, IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINKINFO,
    IFLA_MASTER, IFLA_MTU, IFLA_NET_NS_FD, IFLA_PROTINFO, RTM_NEWLINK, RTM_NEWNEIGH, RTM_SETLINK,
    VETH_INFO_PEER,
};
use crate::record::Network;
use crate::step;

/// Where the program is attached, which [`traffic`](super::traffic) asks.
pub const HOOK: Hook = Hook::TcxIngress;

/// Makes the veth pair, as a port of the bridge; nothing passes before all of it is done.
pub fn create(network: &Network, at: usize, netns: BorrowedFd<'_>) -> Result<(), Error> {
    let socket = Socket::route()?;
    let name = host_name(network, at);
    let refused = |refused: Refused| Error::Interface {
        interface: name.clone(),
        request: refused.request,
        errno: refused.errno,
    };
    match create_pair(&socket, network, at, netns) {
        // That of a run that has just ended, and may be disappearing by itself.
        Err(error) if error.is_in_use() => {
            link::remove(&socket, &name).map_err(refused)?;
            create_pair(&socket, network, at, netns)
        }
        made => made,
    }
    .map_err(refused)?;
    step::done("lan-pair");
    guard(network, at)?;
    step::done("lan-guard");
    set_up(&socket, network, at).map_err(refused)
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
    batch
        .message(
            Request::CreatePair,
            RTM_NEWLINK,
            CREATE | EXCL,
            &link::header(host_index(network, at), 0),
        )
        .text(IFLA_IFNAME, &host_name(network, at))
        .number(IFLA_MTU, lan.mtu)
        .attr(IFLA_ADDRESS, &host)
        .number(IFLA_MASTER, lan.parent_index)
        .nest(IFLA_LINKINFO, |batch| {
            batch.attr(IFLA_INFO_KIND, b"veth").nest(IFLA_INFO_DATA, |batch| {
                batch.nest(VETH_INFO_PEER, |batch| {
                    batch
                        .raw(&link::header(guest_index(network, at), 0))
                        .text(IFLA_IFNAME, &network.lan_name(at))
                        .number(IFLA_MTU, lan.mtu)
                        .attr(IFLA_ADDRESS, &lan.ethernet)
                        .number(IFLA_NET_NS_FD, netns.as_raw_fd().cast_unsigned());
                });
            });
        });
    socket.execute(&mut batch)
}

/// Attaches the program that drops what the guest may not send.
fn guard(network: &Network, at: usize) -> Result<(), Error> {
    let lan = &network.lan[at];
    let addresses = lan.settings.addresses.iter().map(|(address, _)| *address).collect();
    let value = Port { ethernet: lan.ethernet, addresses }.to_bytes();
    let fail = |source| Error::PortProgram { interface: host_name(network, at), source };
    let attach = || {
        let map = bpf::Map::create(Map::Port.name(), MapKind::Hash(1), Map::Port.sizes())?;
        map.update(&[0; 4], &value)?;
        for program in PORT_PROGRAM {
            let maps: Vec<_> = program.maps.iter().map(|(at, _)| (*at, &map)).collect();
            let loaded = bpf::load_with_maps(HOOK, program.name, program.instructions, &maps)?;
            bpf::attach(loaded.as_fd(), HOOK, host_index(network, at))?;
        }
        Ok(())
    };
    attach().map_err(fail)
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
