//! Which protocol a frame is of.

use super::ipv6::Asker;
use super::packet::{Reader, Writer};
use super::{dhcp, dhcp6, router};
use holm_proto::Lease;

/// Room that the longest reply needs, bytes.
pub const REPLY_MAX: usize = 1024;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// Writes the reply to an Ethernet frame and returns its length; `None` when there is nothing to
/// say.
pub fn reply(frame: &[u8], lease: &Lease, out: &mut [u8]) -> Option<usize> {
    let (ethernet, packet) = frame.split_at_checked(ETHERNET)?;
    reply_to(ethernet, packet, lease, out)
}

/// The same where the frame's header and the packet in it are apart.
pub fn reply_to(ethernet: &[u8], packet: &[u8], lease: &Lease, out: &mut [u8]) -> Option<usize> {
    let mut at = Reader(ethernet);
    let _to: [u8; 6] = at.take()?;
    let asker: [u8; 6] = at.take()?;
    let mut out = Writer { bytes: out, length: 0 };
    match at.take()? {
        [0x08, 0x00] => dhcp::reply(packet, asker, lease, &mut out),
        [0x86, 0xdd] => ipv6(packet, asker, lease, &mut out),
        _ => None,
    }
}

/// `packet` begins with the IPv6 header.
fn ipv6(packet: &[u8], mac: [u8; 6], lease: &Lease, out: &mut Writer) -> Option<usize> {
    if lease.gateway_v6 == [0; 16] {
        return None;
    }
    let mut at = Reader(packet);
    let _version_and_length: [u8; 6] = at.take()?;
    let next: [u8; 2] = at.take()?;
    let asker = Asker { mac, address: at.take()? };
    let _destination: [u8; 16] = at.take()?;
    match next {
        // ICMPv6, from this link; UDP.
        [router::ICMP, 255] => router::reply(at.0, &asker, lease, out),
        [dhcp6::UDP, _] => dhcp6::reply(at.0, &asker, lease, out),
        _ => None,
    }
}
