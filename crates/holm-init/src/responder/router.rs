//! Router advertisements (RFC 4861, 8106).

use super::ipv6::{Asker, begin_packet, finish_packet};
use super::packet::{Reader, Writer};
use holm_proto::Lease;

/// The protocol `ICMPv6`.
pub const ICMP: u8 = 58;
const SOLICITATION: u8 = 133;
const ADVERTISEMENT: u8 = 134;
/// The M flag: addresses are assigned by `DHCPv6`.
const MANAGED: u8 = 0x80;

// Options (RFC 4861, 4191, 8106).
const SOURCE_LINK_ADDRESS: u8 = 1;
const MTU: u8 = 5;
const ROUTE_INFORMATION: u8 = 24;
const RECURSIVE_DNS: u8 = 25;

/// Answers a router solicitation. The advertisement has no prefix option, because an address made
/// of one would not be routed: the guest has its one address already, or asks for it by `DHCPv6`.
pub fn reply(body: &[u8], asker: &Asker, lease: &Lease, out: &mut Writer) -> Option<usize> {
    let [SOLICITATION, 0] = Reader(body).take()? else { return None };
    let ip = begin_packet(asker, ICMP, lease, out);
    // Hop limit 64; the longest router lifetime, 65535 s.
    out.put(&[ADVERTISEMENT, 0, 0, 0, 64, MANAGED, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.put(&[SOURCE_LINK_ADDRESS, 1]);
    out.put(&lease.host_mac);
    out.put(&[MTU, 1, 0, 0, 0, 0]);
    out.put(&lease.mtu.to_be_bytes());
    // The default route as an option, which can have an infinite lifetime.
    out.put(&[ROUTE_INFORMATION, 1, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    let servers = lease.dns_v6.iter().filter(|server| **server != [0; 16]);
    let count = u8::try_from(servers.clone().count()).unwrap_or(0);
    if count > 0 {
        out.put(&[RECURSIVE_DNS, 1 + 2 * count, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        servers.for_each(|server| out.put(server));
    }
    finish_packet(ip, ICMP, 2, out)
}
