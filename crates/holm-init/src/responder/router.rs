//! Router advertisements (RFC 4861, 8106).

use super::ipv6::{Asker, close, open};
use super::packet::{Reader, Writer};
use holm_proto::Lease;

/// The protocol `ICMPv6`.
pub const ICMP: u8 = 58;
const SOLICITATION: u8 = 133;
const ADVERTISEMENT: u8 = 134;

/// The advertisement has no prefix, because an address made of one would not be routed: the guest
/// has its one address already, or asks for it by `DHCPv6`.
pub fn reply(body: &[u8], asker: &Asker, lease: &Lease, out: &mut Writer) -> Option<usize> {
    let [SOLICITATION, 0] = Reader(body).take()? else { return None };
    let ip = open(asker, ICMP, lease, out);
    // 64 hops, addresses are to be had by DHCPv6, a router for the longest time that the field
    // holds.
    out.put(&[ADVERTISEMENT, 0, 0, 0, 64, 0x80, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.put(&[1, 1]);
    out.put(&lease.host_mac);
    out.put(&[5, 1, 0, 0, 0, 0]);
    out.put(&lease.mtu.to_be_bytes());
    // The default route as an option, which can have an infinite lifetime.
    out.put(&[24, 1, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    let servers = lease.dns_v6.iter().filter(|server| **server != [0; 16]);
    let count = u8::try_from(servers.clone().count()).unwrap_or(0);
    if count > 0 {
        out.put(&[25, 1 + 2 * count, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        servers.for_each(|server| out.put(server));
    }
    close(ip, ICMP, 2, out)
}
