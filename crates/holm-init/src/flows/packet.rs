//! The beginnings of packets.

use crate::nflog::packets;
use core::net::{Ipv4Addr, Ipv6Addr};
use holm_proto::Flow;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const ICMPV6: u8 = 58;
const SCTP: u8 = 132;
const UDPLITE: u8 = 136;

/// Calls `each` with the connections that a datagram tells, of which it has the first packets;
/// `at` is when, in seconds since 1970.
pub fn connections(datagram: &[u8], at: u64, mut each: impl FnMut(Flow)) {
    packets(datagram, |_, packet| {
        if let Some(flow) = flow(packet, at) {
            each(flow);
        }
    });
}

/// The connection that a packet opens.
fn flow(packet: &[u8], at: u64) -> Option<Flow> {
    match packet.first()? >> 4 {
        4 => {
            let header = usize::from(packet[0] & 15) * 4;
            let address = |offset: usize| {
                let octets = packet.get(offset..)?.first_chunk::<4>()?;
                Some(Ipv4Addr::from(*octets).to_ipv6_mapped())
            };
            let protocol = *packet.get(9)?;
            let (from, to) = (address(12)?, address(16)?);
            Some(opened(at, protocol, from, to, packet.get(header..)?))
        }
        6 => {
            let address =
                |offset: usize| Some(Ipv6Addr::from(*packet.get(offset..)?.first_chunk::<16>()?));
            let protocol = *packet.get(6)?;
            let (from, to) = (address(8)?, address(24)?);
            Some(opened(at, protocol, from, to, packet.get(40..)?))
        }
        _ => None,
    }
}

/// Ports are 0 where a protocol has none; an ICMP query has its identifier, which is translated as
/// a port is.
fn opened(at: u64, protocol: u8, from: Ipv6Addr, to: Ipv6Addr, inner: &[u8]) -> Flow {
    let port = |offset| {
        inner
            .get(offset..)
            .and_then(<[u8]>::first_chunk)
            .map_or(0, |port| u16::from_be_bytes(*port))
    };
    let (source, destination) = match protocol {
        TCP | UDP | DCCP | SCTP | UDPLITE => (port(0), port(2)),
        ICMP | ICMPV6 => (port(4), 0),
        _ => (0, 0),
    };
    Flow::Opened { at, protocol, from: (from, source), to: (to, destination) }
}
