//! The smallest part of netlink(7) that fills the tables of a network namespace.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto,
    socket_with,
};

const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const CREATE: u16 = 0x400;
const EXCLUSIVE: u16 = 0x200;
const NESTED: u16 = 1 << 15;

/// The loopback interface of every namespace.
const LO: u32 = 1;
/// One that is made for neighbours: loopback has one for all addresses.
const VETH: u32 = 10;

/// What adds entries to one kind of table.
pub struct Table {
    socket: OwnedFd,
    entry: fn(u32) -> Vec<u8>,
}

impl Table {
    /// Routes to single addresses (`RTM_NEWROUTE`).
    pub fn routes() -> io::Result<Self> {
        Self::of(None, |number| {
            // rtmsg: IPv4, /32, the main table, static, on the link, unicast.
            let header = [2, 32, 0, 0, 254, 4, 253, 1, 0, 0, 0, 0];
            let attributes =
                [attribute(1, &address(number)), attribute(4, &LO.to_ne_bytes())].concat();
            message(24, &header, &attributes)
        })
    }

    /// Permanent neighbours (`RTM_NEWNEIGH`).
    pub fn neighbours() -> io::Result<Self> {
        let pair = Self::of(None, |_| {
            // ifinfomsg: the interface; then its kind in IFLA_LINKINFO.
            let header = [[0; 4], VETH.to_ne_bytes(), [0; 4], [0; 4]].concat();
            message(16, &header, &nested(18, &[attribute(1, b"veth\0")]))
        })?;
        pair.add(0)?;
        Self::of(None, |number| {
            // ndmsg: IPv4, the interface, NUD_PERMANENT.
            let [a, b, c, d] = VETH.to_ne_bytes();
            let header = [2, 0, 0, 0, a, b, c, d, 0x80, 0, 0, 0];
            let ethernet = [2, 0, 0, 0, 0, 1];
            let attributes = [attribute(1, &address(number)), attribute(2, &ethernet)].concat();
            message(28, &header, &attributes)
        })
    }

    /// Tracked connections (`IPCTNL_MSG_CT_NEW`).
    pub fn connections() -> io::Result<Self> {
        Self::of(Some(netlink::NETFILTER), |number| {
            const UDP: u8 = 17;
            let tuple = |kind, from: &[u8], to: &[u8]| {
                let ip = nested(1, &[attribute(1, from), attribute(2, to)]);
                let port = 9u16.to_be_bytes();
                let protocol =
                    nested(2, &[attribute(1, &[UDP]), attribute(2, &port), attribute(3, &port)]);
                nested(kind, &[ip, protocol])
            };
            let (own, other) = ([127, 0, 0, 1], address(number));
            let timeout = attribute(7, &3600u32.to_be_bytes());
            let attributes = [tuple(1, &own, &other), tuple(2, &other, &own), timeout].concat();
            // nfgenmsg: IPv4.
            message(1 << 8, &[2, 0, 0, 0], &attributes)
        })
    }

    /// Chains of one table of nftables (`NFT_MSG_NEWCHAIN`), each in a batch of its own.
    pub fn nft_chains() -> io::Result<Self> {
        Self::of(Some(netlink::NETFILTER), |number| {
            // nfgenmsg, whose last two bytes name the subsystem where a batch begins and ends.
            let (border, inet) = ([0, 0, 0, 10], [1, 0, 0, 0]);
            let table = attribute(1, b"t\0");
            let chain = attribute(3, format!("{number}\0").as_bytes());
            [
                message_with(REQUEST, 0x10, &border, &[]),
                message_with(REQUEST | CREATE, 10 << 8, &inet, &table),
                message(10 << 8 | 3, &inet, &[table, chain].concat()),
                message_with(REQUEST, 0x11, &border, &[]),
            ]
            .concat()
        })
    }

    fn of(protocol: Option<Protocol>, entry: fn(u32) -> Vec<u8>) -> io::Result<Self> {
        let kind = (AddressFamily::NETLINK, SocketType::RAW);
        let socket = socket_with(kind.0, kind.1, SocketFlags::CLOEXEC, protocol)?;
        Ok(Self { socket, entry })
    }

    /// Adds one entry.
    pub fn add(&self, number: u64) -> io::Result<()> {
        let message = (self.entry)(u32::try_from(number).expect("a small number"));
        sendto(&self.socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut reply = [0u8; 4096];
        let (length, _) = recv(&self.socket, &mut reply[..], RecvFlags::empty())?;
        // nlmsghdr, then the error of nlmsgerr.
        let error = reply[..length].get(16..20).expect("an acknowledgement");
        match i32::from_ne_bytes(error.try_into().expect("four bytes")) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }
}

/// An address of 10.0.0.0/8.
fn address(number: u32) -> [u8; 4] {
    (0x0a00_0001 + number).to_be_bytes()
}

/// Sets the `lo` of this network namespace up (`RTM_NEWLINK`).
pub fn set_up_loopback() -> io::Result<()> {
    let link = Table::of(None, |_| {
        // ifinfomsg: the interface, IFF_UP, and that this is the flag to change.
        let [up, lo] = [1u32, LO].map(u32::to_ne_bytes);
        let header = [[0; 4], lo, up, up].concat();
        message_with(REQUEST | ACKNOWLEDGE, 16, &header, &[])
    })?;
    link.add(0)
}

/// What makes an entry that must not be there yet.
fn message(kind: u16, header: &[u8], attributes: &[u8]) -> Vec<u8> {
    message_with(REQUEST | ACKNOWLEDGE | CREATE | EXCLUSIVE, kind, header, attributes)
}

fn message_with(flags: u16, kind: u16, header: &[u8], attributes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + header.len() + attributes.len()).expect("a short message");
    let mut message = Vec::new();
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(header);
    message.extend(attributes);
    message
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).expect("a short attribute");
    let mut attribute = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    attribute.extend(value);
    attribute.resize(attribute.len().next_multiple_of(4), 0);
    attribute
}

fn nested(kind: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind | NESTED, &attributes.concat())
}
