//! What the responder replies to a guest that asks for its network.

use std::net::UdpSocket;

use holm::config::Net;
use holm::net;

use super::topology::{Guest, SILENCE, Topology};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(dhcp_is_answered),
    test!(router_solicitations_are_answered),
    test!(requests_are_heard_without_the_log),
    test!(a_flood_of_requests_is_the_guests_own),
];

/// Asks by DHCP, and prints what the client's script is given.
const ASK: &str = "f=$(mktemp); trap 'rm -f $f' EXIT; printf '#!/bin/sh\nenv\n' >$f; chmod +x $f
    busybox udhcpc -i eth0 -n -q -f -t 3 -T 1 -O staticroutes -O mtu -s $f";

fn dhcp_is_answered(_: &mut Sandbox) {
    let topology = Topology::new();
    let net = Net {
        dns: vec!["192.0.2.53".parse().unwrap(), "2001:db8::53".parse().unwrap()],
        ..Net::default()
    };
    let guest = topology.guest(1, 9, &net);
    let responder = topology.host.with(|| net::responder(&guest.plan).unwrap().unwrap());
    // Else each packet of the guest would pass a packet socket.
    assert!(responder.requests.is_some(), "the log of nftables tells requests");
    let mut said = String::new();
    let questions = guest.answering(&responder, || {
        // The script is run with "deconfig" and then "bound"; it prints what it was printed.
        said = guest.netns.sh(ASK);
    });
    assert!(questions.len() >= 2, "DISCOVER and REQUEST");
    for expected in [
        "ip=10.97.0.9",
        "mask=32",
        "router=169.254.1.1",
        "dns=192.0.2.53",
        "mtu=1400",
        "lease=4294967295",
        "serverid=169.254.1.1",
        "staticroutes=169.254.1.1/32 0.0.0.0 0.0.0.0/0 169.254.1.1",
    ] {
        assert!(
            said.lines().any(|line| line.trim_end() == expected),
            "{expected} is not in\n{said}"
        );
    }
    // Other traffic does not wake the monitor.
    let questions = guest.answering(&responder, || {
        guest.netns.ask_udp("192.0.2.2:53", SILENCE);
        guest.netns.ask_tcp("192.0.2.2:67", SILENCE);
    });
    assert_eq!(questions, Vec::<Vec<u8>>::new());
}

fn router_solicitations_are_answered(_: &mut Sandbox) {
    let topology = Topology::new();
    let net = Net { dns: vec!["2001:db8::53".parse().unwrap()], ..Net::default() };
    let guest = topology.guest(1, 9, &net);
    let responder = topology.host.with(|| net::responder(&guest.plan).unwrap().unwrap());
    let address = guest.plan.guest_v6.unwrap();
    // A guest whose manager throws everything away and lets the kernel ask.
    let script = "ip -6 route flush default; sysctl -qw net.ipv6.conf.eth0.accept_ra=2 net.ipv6.conf.eth0.addr_gen_mode=0
        ip link set eth0 down; ip link set eth0 up; sleep 2";
    let questions = guest.answering(&responder, || drop(guest.netns.sh(script)));
    assert!(!questions.is_empty(), "no solicitation was heard");
    let routes = guest.netns.sh("ip -6 route show default");
    assert!(routes.contains("via fe80::1") && routes.contains("proto ra"), "{routes}");
    let addresses = guest.netns.sh("ip -6 -o addr show dev eth0 scope global");
    assert!(addresses.lines().count() <= 1, "no address but its own: {addresses}");
    guest.netns.sh(&format!("ip addr replace {address}/128 dev eth0 nodad"));
    let _server = topology.outside.serve_tcp("[::]:7000");
    assert!(guest.netns.reaches("[2001:db8::1]:7000").is_some());
}

/// Another program listens to the guest's group, as where a kernel has no such log.
fn requests_are_heard_without_the_log(_: &mut Sandbox) {
    let topology = Topology::new();
    let guest = topology.guest(1, 9, &Net::default());
    let responder = || topology.host.with(|| net::responder(&guest.plan).unwrap().unwrap());
    let another = responder();
    let responder = responder();
    assert!(another.requests.is_some() && responder.requests.is_none());
    let mut said = String::new();
    let questions = guest.answering(&responder, || said = guest.netns.sh(ASK));
    assert!(questions.len() >= 2, "DISCOVER and REQUEST");
    assert!(said.contains("ip=10.97.0.9"), "{said}");
}

/// While its monitor does not read them.
fn a_flood_of_requests_is_the_guests_own(_: &mut Sandbox) {
    let topology = Topology::new();
    let [flooder, neighbour] = [9, 10].map(|context| topology.guest(1, context, &Net::default()));
    let responder =
        |guest: &Guest| topology.host.with(|| net::responder(&guest.plan).unwrap().unwrap());
    let (own, neighbours) = (responder(&flooder), responder(&neighbour));
    flooder.netns.with(|| {
        let socket = UdpSocket::bind("0.0.0.0:68").unwrap();
        for _ in 0..5000 {
            socket.send_to(&[0; 300], "169.254.1.1:67").unwrap();
        }
    });
    let mut said = String::new();
    neighbour.answering(&neighbours, || said = neighbour.netns.sh(ASK));
    assert!(said.contains("ip=10.97.0.10"), "{said}");
    // It lost most of them, and is answered again.
    let questions = flooder.answering(&own, || said = flooder.netns.sh(ASK));
    assert!(said.contains("ip=10.97.0.9") && questions.len() < 1000, "{} {said}", questions.len());
}
