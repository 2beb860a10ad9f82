//! Veth pairs between the host and a guest.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use super::link;
use super::netlink::{Batch, CREATE, EXCL, Refused, Socket};
use super::request::Request;
use super::uapi::{
    IFLA_ADDRESS, IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINKINFO, IFLA_MTU,
    IFLA_NET_NS_FD, IFLA_NUM_RX_QUEUES, IFLA_NUM_TX_QUEUES, RTM_NEWLINK, VETH_INFO_PEER,
};

/// An end of a pair.
#[derive(Debug)]
pub struct End<'a> {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: &'a str,
    /// Its Ethernet address.
    pub ethernet: [u8; 6],
}

/// Adds the message that makes a pair, both ends down, with the guest's in `netns`; attributes that
/// are added behind it are the host's end's.
pub fn create(batch: &mut Batch, host: &End<'_>, guest: &End<'_>, mtu: u32, netns: BorrowedFd<'_>) {
    batch.message(Request::CreatePair, RTM_NEWLINK, CREATE | EXCL, &link::header(host.index, 0));
    describe(batch, host, mtu);
    batch.nest(IFLA_LINKINFO, |batch| {
        batch.attr(IFLA_INFO_KIND, b"veth").nest(IFLA_INFO_DATA, |batch| {
            batch.nest(VETH_INFO_PEER, |batch| {
                batch.raw(&link::header(guest.index, 0));
                describe(batch, guest, mtu);
                batch.number(IFLA_NET_NS_FD, netns.as_raw_fd().cast_unsigned());
            });
        });
    });
}

fn describe(batch: &mut Batch, end: &End<'_>, mtu: u32) {
    batch
        .text(IFLA_IFNAME, end.name)
        .number(IFLA_MTU, mtu)
        .attr(IFLA_ADDRESS, &end.ethernet)
        .number(IFLA_NUM_TX_QUEUES, 1)
        .number(IFLA_NUM_RX_QUEUES, 1);
}

/// Makes a pair whose host's end has this name. A guest that ended without being detached may have
/// left an interface of the same name and index, which may just be disappearing by itself.
pub fn replace(
    socket: &Socket,
    name: &str,
    create: impl Fn() -> Result<(), Refused>,
) -> Result<(), Refused> {
    match create() {
        Err(Refused { request: Request::CreatePair, errno: Errno::EXIST | Errno::BUSY }) => {
            link::remove(socket, name)?;
            create()
        }
        made => made,
    }
}
