//! Frames that a guest sends to the responder.

use holm_init::responder::{REPLY_MAX, reply};
use holm_proto::Lease;

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;

/// A frame. A reply fits its buffer, and has valid lengths and checksums.
pub fn responder(frame: &[u8]) -> bool {
    let lease = Lease {
        host_mac: [2, 0x68, 0x68, 1, 0, 9],
        guest_v4: [10, 97, 0, 9],
        gateway_v4: [169, 254, 1, 1],
        guest_v6: [0xfd, 0, 0x68, 0x6f, 0x6c, 0x6d, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9],
        gateway_v6: [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        mtu: 1400,
        dns_v4: [[192, 0, 2, 53], [192, 0, 2, 54], [0; 4]],
        dns_v6: [[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x53], [0; 16], [0; 16]],
    };
    let room = frame.first().map_or(0, |byte| usize::from(*byte) * 4);
    if let Some(length) = reply(frame, &lease, &mut vec![0; room]) {
        assert!(length <= room, "{length} bytes in a buffer of {room}");
    }
    let mut out = [0; REPLY_MAX];
    let Some(length) = reply(frame, &lease, &mut out) else { return false };
    let sent = &out[..length];
    assert_eq!(sent[6..12], lease.host_mac);
    assert_eq!(sent[12..ETHERNET], frame[12..ETHERNET], "the reply is of another protocol");
    let packet = &sent[ETHERNET..];
    if packet[0] == 0x45 {
        assert_eq!(number(packet, 2), packet.len());
        assert_eq!(internet_sum(&packet[..IPV4], 0), 0xffff);
        assert_eq!(number(packet, IPV4 + 4), packet.len() - IPV4);
    } else {
        assert_eq!(packet[0], 0x60);
        assert_eq!(number(packet, 4), packet.len() - IPV6);
        let pseudo_header =
            internet_sum(&packet[8..IPV6], packet.len() - IPV6 + usize::from(packet[6]));
        assert_eq!(internet_sum(&packet[IPV6..], pseudo_header), 0xffff);
    }
    true
}

fn number(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
}

/// The sum that the internet checksum (RFC 1071) is the complement of.
fn internet_sum(bytes: &[u8], start: usize) -> usize {
    let pairs = bytes.chunks(2).map(|pair| match *pair {
        [high, low] => usize::from(u16::from_be_bytes([high, low])),
        _ => usize::from(pair[0]) << 8,
    });
    let mut total = start + pairs.sum::<usize>();
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total
}
