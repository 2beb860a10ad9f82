extern crate std;

use super::connections;
use core::net::Ipv6Addr;
use holm_proto::Flow;
use std::vec::Vec;

const MARK: [u8; 8] = [8, 0, 2, 0, 0, 0, 0, 1];

/// A message of the kernel with a packet.
fn message(kind: u16, packet: &[u8]) -> Vec<u8> {
    let mut payload = MARK.to_vec();
    payload.extend((u16::try_from(packet.len()).unwrap() + 4).to_ne_bytes());
    payload.extend(9u16.to_ne_bytes());
    payload.extend(packet);
    let mut bytes = Vec::new();
    bytes.extend((u32::try_from(payload.len()).unwrap() + 20).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend([0; 10 + 4]);
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn ipv4(protocol: u8, inner: &[u8]) -> Vec<u8> {
    let mut packet = std::vec![0x46, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
    packet.extend([192, 0, 2, 2, 198, 51, 100, 1]);
    // An option.
    packet.extend([1, 1, 1, 1]);
    packet.extend(inner);
    packet
}

fn ipv6(protocol: u8, inner: &[u8]) -> Vec<u8> {
    let mut packet = std::vec![0x60, 0, 0, 0, 0, 0, protocol, 64];
    packet.extend("2001:db8::2".parse::<Ipv6Addr>().unwrap().octets());
    packet.extend("2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
    packet.extend(inner);
    packet
}

fn read(datagram: &[u8]) -> Vec<Flow> {
    let mut flows = Vec::new();
    connections(datagram, 5, |flow| flows.push(flow));
    flows
}

fn opened(protocol: u8, from: (&str, u16), to: (&str, u16)) -> Flow {
    let end = |(address, port): (&str, u16)| (address.parse().unwrap(), port);
    Flow::Opened { at: 5, protocol, from: end(from), to: end(to) }
}

#[test]
fn several_packets_of_a_datagram() {
    let ports = [0x9c, 0x40, 0, 25, 0, 0, 0, 0];
    let mut datagram = message(0x400, &ipv4(6, &ports));
    datagram.extend(message(0x400, &ipv6(17, &ports)));
    datagram.extend(message(0x400, &ipv4(1, &[8, 0, 0, 0, 1, 2, 0, 1])));
    datagram.extend(message(0x400, &ipv4(47, &ports)));
    datagram.extend(message(0x3, &ipv4(6, &ports)));
    let (host, other) = ("::ffff:192.0.2.2", "::ffff:198.51.100.1");
    let expected = [
        opened(6, (host, 40000), (other, 25)),
        opened(17, ("2001:db8::2", 40000), ("2001:db8::1", 25)),
        opened(1, (host, 0x0102), (other, 0)),
        opened(47, (host, 0), (other, 0)),
    ];
    assert_eq!(read(&datagram), expected);
}

#[test]
fn what_is_cut_off_is_left_out() {
    let whole = message(0x400, &ipv4(6, &[0x9c, 0x40, 0, 25]));
    for length in 0..whole.len() {
        assert_eq!(read(&whole[..length]), [], "{length}");
    }
    // A packet of which the kernel has copied less.
    for length in 0..24 {
        assert_eq!(read(&message(0x400, &ipv4(6, &[])[..length])), [], "{length}");
    }
    assert_eq!(read(&message(0x400, &ipv4(6, &[]))).len(), 1);
    assert_eq!(read(&message(0x400, &[0x70; 60])), []);
}
