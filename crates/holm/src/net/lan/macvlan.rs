//! A guest's macvlan.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::names::guest_index;
use crate::net::error::Error;
use crate::net::link;
use crate::net::netlink::{Batch, CREATE, EXCL, Refused, Socket};
use crate::net::request::Request;
use crate::net::uapi::{
    IFF_UP, IFLA_ADDRESS, IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINK, IFLA_LINKINFO,
    IFLA_NET_NS_FD, RTM_NEWLINK,
};
use crate::record::Network;

/// How long a macvlan of the run before may take to disappear.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// Makes it in the guest's network namespace, up.
pub fn create(network: &Network, at: usize, netns: BorrowedFd<'_>) -> Result<(), Error> {
    let lan = &network.lan[at];
    let error = |refused| Error::interface(&lan.settings.parent, refused);
    let changes = Socket::link_changes().map_err(error)?;
    let socket = Socket::route().map_err(error)?;
    let until = Instant::now() + GONE_WITHIN;
    loop {
        match try_create(&socket, network, at, netns) {
            // Two on one interface cannot have the same Ethernet address, and that of the run
            // before disappears with its network namespace, some time after the guest has ended.
            Err(Refused { errno: Errno::ADDRINUSE, .. }) if changes.wait_until(until) => {}
            made => return made.map_err(error),
        }
    }
}

fn try_create(
    socket: &Socket,
    network: &Network,
    at: usize,
    netns: BorrowedFd<'_>,
) -> Result<(), Refused> {
    const MODE: u16 = 1;
    const PRIVATE: u32 = 1;
    const BRIDGE: u32 = 4;
    let lan = &network.lan[at];
    let mode = if network.peers { BRIDGE } else { PRIVATE };
    let header = link::header(guest_index(network, at), IFF_UP);
    let mut batch = Batch::default();
    batch
        .message(Request::CreateMacvlan, RTM_NEWLINK, CREATE | EXCL, &header)
        .text(IFLA_IFNAME, &network.lan_name(at))
        .attr(IFLA_ADDRESS, &lan.ethernet)
        .number(IFLA_LINK, lan.parent_index)
        .number(IFLA_NET_NS_FD, netns.as_raw_fd().cast_unsigned())
        .nest(IFLA_LINKINFO, |batch| {
            batch.attr(IFLA_INFO_KIND, b"macvlan").nest(IFLA_INFO_DATA, |batch| {
                batch.number(MODE, mode);
            });
        });
    socket.execute(&mut batch)
}
