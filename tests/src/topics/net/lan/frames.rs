//! What a guest may send to its port of a bridge, frame by frame, and what the port gets.

use std::net::IpAddr;
use std::os::fd::OwnedFd;

use holm::net;
use rustix::io::write;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketFlags, SocketType, recv, socket_with};

use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use crate::topics::net::topology::{Guest, PATIENCE, TestNetns, Topology};

pub const TESTS: &[Test] = &[
    test!(a_port_takes_only_what_the_guest_may_send),
    test!(a_guest_that_chooses_its_addresses_keeps_its_ethernet_address),
    test!(a_port_gets_only_what_is_for_the_guest),
];

/// A packet socket of a guest's interface, by which frames are sent.
fn sender(guest: &Guest) -> OwnedFd {
    let shown = guest.netns.sh("ip -o link show dev eth0");
    let index = shown.split(':').next().unwrap().trim().parse().unwrap();
    guest.netns.with(|| holm_sys::packet::open(index, false).unwrap())
}

/// A packet socket that receives all that arrives in a network namespace.
fn listener(netns: &TestNetns) -> OwnedFd {
    const ALL: u32 = (3u16.to_be()) as u32;
    netns.with(|| {
        let protocol = Protocol::from_raw(ALL.try_into().unwrap());
        let flags = SocketFlags::CLOEXEC;
        let socket =
            socket_with(AddressFamily::PACKET, SocketType::RAW, flags, Some(protocol)).unwrap();
        rustix::net::sockopt::set_socket_timeout(
            &socket,
            rustix::net::sockopt::Timeout::Recv,
            Some(PATIENCE),
        )
        .unwrap();
        socket
    })
}

/// Sends frames, each with its number at the end, and one more that passes; returns which arrived.
fn arrive(guest: &Guest, at: &TestNetns, frames: &[Vec<u8>], passes: &[u8]) -> Vec<bool> {
    let (from, to) = (sender(guest), listener(at));
    for (number, frame) in frames.iter().map(Vec::as_slice).chain([passes]).enumerate() {
        let mark = [MARK, &u32::try_from(number).unwrap().to_be_bytes()].concat();
        write(&from, &[frame, &mark].concat()).unwrap();
    }
    let mut arrived = vec![false; frames.len() + 1];
    let mut buffer = [0; 2048];
    while !arrived[frames.len()] {
        let (length, _) = recv(&to, &mut buffer[..], RecvFlags::empty()).unwrap();
        let Some((rest, number)) = buffer[..length].split_last_chunk::<4>() else { continue };
        if rest.ends_with(MARK) {
            arrived[u32::from_be_bytes(*number) as usize] = true;
        }
    }
    arrived.pop();
    arrived
}

const BROADCAST: [u8; 6] = [0xff; 6];

fn ethernet(from: [u8; 6], kind: u16, payload: &[u8]) -> Vec<u8> {
    [&BROADCAST, &from, &kind.to_be_bytes()[..], payload].concat()
}

fn arp(from: [u8; 6], sender: [u8; 6], address: [u8; 4]) -> Vec<u8> {
    let target = [0, 0, 0, 0, 0, 0, 192, 0, 2, 1];
    ethernet(from, 0x0806, &[&[0, 1, 8, 0, 6, 4, 0, 2], &sender[..], &address, &target].concat())
}

/// What [`arrive`] adds to a frame.
const MARK: &[u8] = b"frame number ";
const ADDED: usize = MARK.len() + 4;

/// An IPv4 packet of a protocol. Bridges look at its length and checksum where they filter.
fn v4(from: [u8; 6], source: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(20 + payload.len() + ADDED).unwrap().to_be_bytes();
    let head = [0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0];
    let mut packet = [&head[..], &source, &[255; 4], payload].concat();
    let words =
        packet[..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let sum = !u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap();
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    ethernet(from, 0x0800, &packet)
}

/// An IPv6 packet whose first header is of a kind.
fn v6(from: [u8; 6], source: &str, kind: u8, payload: &[u8]) -> Vec<u8> {
    let IpAddr::V6(source) = source.parse().unwrap() else { panic!("{source}") };
    let all = [0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let [high, low] = u16::try_from(payload.len() + ADDED).unwrap().to_be_bytes();
    let head = [0x60, 0, 0, 0, high, low, kind, 255];
    ethernet(from, 0x86dd, &[&head[..], &source.octets(), &all, payload].concat())
}

fn udp(from: u16) -> Vec<u8> {
    [&from.to_be_bytes()[..], &[0, 9, 0, 0, 0, 0]].concat()
}

/// A message of neighbour discovery.
fn discovery(kind: u8, target: &str) -> Vec<u8> {
    let IpAddr::V6(target) = target.parse().unwrap() else { panic!("{target}") };
    [&[kind, 0, 0, 0, 0, 0, 0, 0][..], &target.octets()].concat()
}

/// What is behind a header of an IPv6 packet: this kind of header, and what follows it.
fn behind(next: u8, payload: &[u8]) -> Vec<u8> {
    [&[next, 0, 0, 0, 0, 0, 0, 0], payload].concat()
}

const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 1];
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const OWN: &str = "2001:db8::7";
const FOREIGN: &str = "2001:db8::1";

/// What a guest with one address of each family sends; whether it may; and whether it may if it
/// chooses its addresses itself.
fn frames(own: [u8; 6], link_local: &str) -> Vec<(&'static str, Vec<u8>, bool, bool)> {
    let (mine, theirs) = ([192, 0, 2, 7], [192, 0, 2, 1]);
    let fragment = |offset: u16, next: u8, payload: &[u8]| {
        let [high, low] = (offset << 3 | 1).to_be_bytes();
        v6(own, OWN, 44, &[&[next, 0, high, low, 0, 0, 0, 1], payload].concat())
    };
    let options = |kind: u8, payload: &[u8]| v6(own, OWN, kind, &behind(ICMPV6, payload));
    let many = (0..6)
        .fold(discovery(136, OWN), |inner, at| behind(if at == 0 { ICMPV6 } else { 60 }, &inner));
    let mut tagged = v4(own, mine, UDP, &udp(9));
    tagged.splice(12..12, [0x81, 0, 0, 5]);
    vec![
        ("ARP", arp(own, own, mine), true, true),
        ("ARP of who looks whether an address is free", arp(own, own, [0; 4]), true, true),
        ("ARP with another's address", arp(own, own, theirs), false, true),
        ("ARP with another's Ethernet address", arp(own, OTHER, mine), false, false),
        ("ARP from another's Ethernet address", arp(OTHER, own, mine), false, false),
        ("IPv4", v4(own, mine, UDP, &udp(9)), true, true),
        ("IPv4 from another's Ethernet address", v4(OTHER, mine, UDP, &udp(9)), false, false),
        ("IPv4 from another's address", v4(own, theirs, UDP, &udp(9)), false, true),
        ("a DHCP client", v4(own, [0; 4], UDP, &udp(68)), true, true),
        ("a DHCP server", v4(own, mine, UDP, &udp(67)), false, false),
        ("IPv6", v6(own, OWN, UDP, &udp(9)), true, true),
        ("IPv6 from the link-local address", v6(own, link_local, UDP, &udp(9)), true, true),
        ("IPv6 from another link-local address", v6(own, "fe80::1", UDP, &udp(9)), false, true),
        ("IPv6 from another's address", v6(own, FOREIGN, UDP, &udp(9)), false, true),
        ("IPv6 from another's Ethernet address", v6(OTHER, OWN, UDP, &udp(9)), false, false),
        ("a DHCPv6 client", v6(own, link_local, UDP, &udp(546)), true, true),
        ("a DHCPv6 server", v6(own, OWN, UDP, &udp(547)), false, false),
        ("a solicitation", v6(own, OWN, ICMPV6, &discovery(135, FOREIGN)), true, true),
        ("duplicate address detection", v6(own, "::", ICMPV6, &discovery(135, OWN)), true, true),
        ("an advertisement", v6(own, OWN, ICMPV6, &discovery(136, OWN)), true, true),
        ("that of another", v6(own, OWN, ICMPV6, &discovery(136, FOREIGN)), false, true),
        ("that of another behind options", options(60, &discovery(136, FOREIGN)), false, true),
        ("a router's solicitation", v6(own, link_local, ICMPV6, &discovery(133, "::")), true, true),
        ("a router's advertisement", v6(own, OWN, ICMPV6, &discovery(134, "::")), false, false),
        ("one behind options", options(0, &discovery(134, "::")), false, false),
        ("one behind a routing header", options(43, &discovery(134, "::")), false, false),
        ("one in a fragment", fragment(0, ICMPV6, &discovery(134, "::")), false, false),
        ("more of a fragment", fragment(1, ICMPV6, &[0; 8]), true, true),
        ("a redirect", v6(own, OWN, ICMPV6, &discovery(137, FOREIGN)), false, false),
        ("more headers than anybody sends", v6(own, OWN, 60, &many), false, false),
        ("a bridge's own protocol", ethernet(own, 0x0026, &[0x42, 0x42, 3]), false, false),
        ("another protocol", ethernet(own, 0x88cc, &[0; 46]), false, false),
        ("a tag", tagged, false, false),
    ]
}

/// Sends all frames, and looks which arrive.
fn sends(topology: &Topology, guest: &Guest, chooses: bool) {
    let own = guest.plan.lan[0].ethernet;
    let interface = [own[0] ^ 2, own[1], own[2], 0xff, 0xfe, own[3], own[4], own[5]];
    let words = interface.chunks(2).map(|word| format!("{:02x}{:02x}", word[0], word[1]));
    let link_local = format!("fe80::{}", words.collect::<Vec<_>>().join(":"));
    let all = frames(own, &link_local);
    let bytes: Vec<_> = all.iter().map(|(_, frame, ..)| frame.clone()).collect();
    let arrived = arrive(guest, &topology.outside, &bytes, &arp(own, own, [192, 0, 2, 7]));
    for ((name, _, set, chosen), arrived) in all.iter().zip(arrived) {
        assert_eq!(arrived, if chooses { *chosen } else { *set }, "{name}");
    }
    let refused = all.iter().filter(|(_, _, set, chosen)| !if chooses { *chosen } else { *set });
    let counted = topology.host.with(|| net::lan_traffic(&guest.plan).unwrap());
    let dropped = counted[0].as_ref().unwrap().dropped.unwrap();
    assert!(dropped >= refused.count() as u64, "{dropped}");
}

fn a_port_takes_only_what_the_guest_may_send(_: &mut Sandbox) {
    let topology = Topology::bridged();
    let guest = topology.lan_guest(5, &["bridge:br0@192.0.2.7/24@2001:db8::7/64"]);
    sends(&topology, &guest, false);
    // No firewall has a part in it.
    topology.host.sh("nft flush ruleset");
    sends(&topology, &guest, false);
}

fn a_guest_that_chooses_its_addresses_keeps_its_ethernet_address(_: &mut Sandbox) {
    let topology = Topology::bridged();
    let guest = topology.lan_guest(5, &["bridge:br0"]);
    sends(&topology, &guest, true);
}

fn a_port_gets_only_what_is_for_the_guest(_: &mut Sandbox) {
    let topology = Topology::bridged();
    let guest = topology.lan_guest(5, &["bridge:br0@192.0.2.7/24"]);
    let other = topology.lan_guest(6, &["bridge:br0@192.0.2.8/24"]);
    // The bridge knows no machine with the first address, and sends that to all ports.
    let own = other.plan.lan[0].ethernet;
    let heard = listener(&guest.netns);
    let everywhere = listener(&topology.outside);
    let from = sender(&other);
    for (to, mark) in [([2, 0, 0, 0, 0, 9], 1), (guest.plan.lan[0].ethernet, 2)] {
        let mut frame = v4(own, [192, 0, 2, 8], UDP, &udp(9));
        frame[..6].copy_from_slice(&to);
        write(&from, &[&frame, MARK, &[0, 0, 0, mark]].concat()).unwrap();
    }
    let next = |socket: &OwnedFd| {
        let mut buffer = [0; 2048];
        loop {
            let (length, _) = recv(socket, &mut buffer[..], RecvFlags::empty()).unwrap();
            if let Some((rest, number)) = buffer[..length].split_last_chunk::<4>()
                && rest.ends_with(MARK)
            {
                return number[3];
            }
        }
    };
    assert_eq!(next(&everywhere), 1, "what is for an unknown machine");
    assert_eq!(next(&heard), 2, "only what is for the guest");
}
