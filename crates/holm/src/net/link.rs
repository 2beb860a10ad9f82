//! Interfaces: finding them, removing them, bringing them up.

use rustix::io::Errno;

use super::netlink::{Batch, DUMP, Refused, Socket, find, number, text};
use super::plan::MTU_DEFAULT;
use super::published::Published;
use super::request::Request;
use super::traffic::Volume;
use super::uapi::{
    IFF_UP, IFLA_EXT_MASK, IFLA_IFALIAS, IFLA_IFNAME, IFLA_INFO_KIND, IFLA_LINKINFO, IFLA_MASTER,
    IFLA_MTU, IFLA_NUM_TX_QUEUES, IFLA_STATS64, RTM_DELLINK, RTM_GETLINK, RTM_NEWLINK, RTM_SETLINK,
};
use crate::record::FIRST_HOST_INDEX;

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Its alias, empty without one.
    pub alias: String,
}

impl Link {
    /// Parses the kernel's message about an interface.
    pub fn parse(kind: u16, payload: &[u8]) -> Option<Self> {
        let attributes = payload.get(16..).filter(|_| kind == RTM_NEWLINK)?;
        let name = text(find(attributes, IFLA_IFNAME)?)?.to_owned();
        let alias = find(attributes, IFLA_IFALIAS).and_then(text).unwrap_or_default().to_owned();
        Some(Self { name, alias })
    }

    /// The guest's published ports.
    pub fn published(&self) -> Published {
        Published::parse(&self.alias)
    }
}

/// `struct ifinfomsg`.
pub fn header(index: u32, flags: u32) -> [u8; 16] {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..16].copy_from_slice(&flags.to_ne_bytes());
    header
}

/// Brings up the loopback interface of the current network namespace.
pub fn loopback_up(batch: &mut Batch) {
    // The loopback interface of every namespace has index 1.
    batch.message(Request::BringUpLoopback, RTM_SETLINK, 0, &header(1, IFF_UP));
}

/// Removes an interface by name; `false` if there was none.
pub fn remove(socket: &Socket, name: &str) -> Result<bool, Refused> {
    let mut batch = Batch::default();
    batch.message(Request::RemoveHostEnd, RTM_DELLINK, 0, &header(0, 0)).text(IFLA_IFNAME, name);
    match socket.execute(&mut batch) {
        Ok(()) => Ok(true),
        Err(refused) if refused.errno == Errno::NODEV => Ok(false),
        Err(refused) => Err(refused),
    }
}

/// Clears an interface's alias, if the interface exists.
pub fn clear_alias(socket: &Socket, name: &str) -> Result<(), Refused> {
    let mut batch = Batch::default();
    batch
        .message(Request::ClearAlias, RTM_SETLINK, 0, &header(0, 0))
        .text(IFLA_IFNAME, name)
        .attr(IFLA_IFALIAS, b"");
    match socket.execute(&mut batch) {
        Err(refused) if refused.errno != Errno::NODEV => Err(refused),
        _ => Ok(()),
    }
}

const SKIP_STATISTICS: u32 = 1 << 3;

/// Finds an interface by name.
pub fn get(socket: &Socket, name: &str) -> Result<Option<Link>, Refused> {
    let mut found = None;
    find_named(socket, name, |kind, payload| found = Link::parse(kind, payload))?;
    Ok(found)
}

/// The index of an interface; `None` if there is none of this name.
pub fn index(socket: &Socket, name: &str) -> Result<Option<u32>, Refused> {
    let mut index = None;
    find_named(socket, name, |_, payload| index = payload.get(4..8).and_then(number))?;
    Ok(index)
}

/// An interface that guests' interfaces may be on.
#[derive(Debug)]
pub struct Described {
    /// Its index.
    pub index: u32,
    /// The kernel's name for what it is (`bridge`); `None` for real ones.
    pub kind: Option<String>,
    /// It has Ethernet addresses, and is not loopback.
    pub is_ethernet: bool,
    /// It is a port of a bridge or of a bond.
    pub is_port: bool,
    /// In bytes.
    pub mtu: u32,
}

/// What an interface is; `None` if there is none of this name.
pub fn describe(socket: &Socket, name: &str) -> Result<Option<Described>, Refused> {
    const ARPHRD_ETHER: [u8; 2] = 1u16.to_ne_bytes();
    let mut found = None;
    find_named(socket, name, |_, payload| {
        let Some((header, attributes)) = payload.split_at_checked(16) else { return };
        let kind = find(attributes, IFLA_LINKINFO).and_then(|info| find(info, IFLA_INFO_KIND));
        let master = find(attributes, IFLA_MASTER).and_then(number);
        found = number(&header[4..8]).map(|index| Described {
            index,
            kind: kind.and_then(text).map(str::to_owned),
            is_ethernet: header[2..4] == ARPHRD_ETHER,
            is_port: master.is_some_and(|master| master != 0),
            mtu: find(attributes, IFLA_MTU).and_then(number).unwrap_or(MTU_DEFAULT),
        });
    })?;
    Ok(found)
}

/// What an interface has received and sent; `None` if there is none of this name.
pub fn counters(socket: &Socket, name: &str) -> Result<Option<(Volume, Volume)>, Refused> {
    let mut batch = Batch::default();
    batch.message(Request::FindLink, RTM_GETLINK, 0, &header(0, 0)).text(IFLA_IFNAME, name);
    let mut found = None;
    let parse = |attributes: &[u8]| {
        // `struct rtnl_link_stats64` begins with packets received and sent, then their bytes.
        let all = find(attributes, IFLA_STATS64)?;
        let at = |place: usize| {
            all.get(place * 8..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
        };
        let received = Volume { packets: at(0)?, bytes: at(2)? };
        Some((received, Volume { packets: at(1)?, bytes: at(3)? }))
    };
    match socket.query(&batch, |_, payload| found = payload.get(16..).and_then(parse)) {
        Err(refused) if refused.errno != Errno::NODEV => Err(refused),
        _ => Ok(found),
    }
}

/// Asks for an interface; nothing is reported if there is none of this name.
fn find_named(socket: &Socket, name: &str, report: impl FnMut(u16, &[u8])) -> Result<(), Refused> {
    let mut batch = Batch::default();
    batch
        .message(Request::FindLink, RTM_GETLINK, 0, &header(0, 0))
        .text(IFLA_IFNAME, name)
        .number(IFLA_EXT_MASK, SKIP_STATISTICS);
    match socket.query(&batch, report) {
        Err(refused) if refused.errno != Errno::NODEV => Err(refused),
        _ => Ok(()),
    }
}

/// All veth interfaces of this network namespace.
pub fn all(socket: &Socket) -> Result<Vec<Link>, Refused> {
    let mut batch = Batch::default();
    batch
        .message(Request::ListLinks, RTM_GETLINK, DUMP, &header(0, 0))
        .number(IFLA_EXT_MASK, SKIP_STATISTICS)
        .nest(IFLA_LINKINFO, |batch| {
            batch.attr(IFLA_INFO_KIND, b"veth");
        });
    let mut links = Vec::new();
    socket.query(&batch, |kind, payload| links.extend(Link::parse(kind, payload)))?;
    Ok(links)
}

/// The interfaces by which packets come from elsewhere: those that are neither ports of a bridge or
/// bond, whose packets come by that one, nor the host's ends of guests' veth pairs.
pub fn from_elsewhere(socket: &Socket) -> Result<Vec<u32>, Refused> {
    let mut batch = Batch::default();
    batch
        .message(Request::ListLinks, RTM_GETLINK, DUMP, &header(0, 0))
        .number(IFLA_EXT_MASK, SKIP_STATISTICS);
    let mut indexes = Vec::new();
    socket.query(&batch, |_, payload| {
        let Some((header, attributes)) = payload.split_at_checked(16) else { return };
        let is_port = find(attributes, IFLA_MASTER).and_then(number).is_some_and(|it| it != 0);
        let index = number(&header[4..8]).filter(|&index| index < FIRST_HOST_INDEX);
        indexes.extend(index.filter(|_| !is_port));
    })?;
    Ok(indexes)
}

/// The MTU of an interface in bytes.
pub fn mtu(socket: &Socket, index: u32) -> Result<Option<u32>, Refused> {
    read(socket, Request::ReadUplinkMtu, index, |attributes| {
        find(attributes, IFLA_MTU).and_then(number)
    })
}

/// How many queues an interface sends by.
pub fn tx_queues(socket: &Socket, index: u32) -> Result<u32, Refused> {
    let count = |attributes: &[u8]| find(attributes, IFLA_NUM_TX_QUEUES).and_then(number);
    Ok(read(socket, Request::FindLink, index, count)?.unwrap_or_default())
}

/// The name of an interface.
pub fn name(socket: &Socket, index: u32) -> Result<Option<String>, Refused> {
    read(socket, Request::FindLink, index, |attributes| {
        find(attributes, IFLA_IFNAME).and_then(text).map(str::to_owned)
    })
}

/// Reads something of the attributes of an interface.
fn read<T>(
    socket: &Socket,
    request: Request,
    index: u32,
    find: impl Fn(&[u8]) -> Option<T>,
) -> Result<Option<T>, Refused> {
    let mut batch = Batch::default();
    batch
        .message(request, RTM_GETLINK, 0, &header(index, 0))
        .number(IFLA_EXT_MASK, SKIP_STATISTICS);
    let mut found = None;
    socket.query(&batch, |_, payload| found = payload.get(16..).and_then(&find))?;
    Ok(found)
}
