//! Which packets pass between guests, their host and the outside.

use std::net::UdpSocket;

use holm::config::{Net, Proto};
use holm::net;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketType, ipproto, recv, sendto, socket, sockopt,
};

use super::topology::{PATIENCE, SILENCE, TestNetns, Topology};
use super::{TCP_80, published};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(a_guest_reaches_its_host_others_and_outside),
    test!(guests_without_peers_are_isolated),
    test!(guests_without_peers_may_reach_the_host),
    test!(other_instances_are_other_guests),
    test!(guests_cannot_spoof_addresses),
    test!(two_guests_at_one_address_are_refused),
    test!(loopback_services_of_the_host_stay_private),
    test!(a_loopback_resolver_of_the_host_is_reached),
    test!(services_of_the_host_need_a_key),
    test!(a_name_server_at_the_hosts_address_is_reached),
    test!(unsolicited_packets_from_outside_are_dropped),
    test!(guests_play_no_router_for_the_host),
    test!(guests_requests_for_addresses_reach_no_server_of_the_host),
];

fn a_guest_reaches_its_host_others_and_outside(_: &mut Sandbox) {
    let topology = Topology::new();
    let with_host = Net { host_access: true, ..Net::default() };
    let (one, two) = (topology.guest(1, 1, &with_host), topology.guest(1, 2, &Net::default()));
    let _servers = [
        topology.host.serve_tcp("[::]:7000"),
        topology.outside.serve_tcp("[::]:7000"),
        two.netns.serve_tcp("[::]:7000"),
    ];
    assert_eq!(one.plan.mtu, 1400);
    let (v4, v6) = (one.plan.guest_v4, one.plan.guest_v6.unwrap());
    assert_eq!(
        one.netns.reaches("192.0.2.2:7000"),
        Some(v4.to_ipv6_mapped().into()),
        "the host, by IPv4"
    );
    assert_eq!(one.netns.reaches("[2001:db8::2]:7000"), Some(v6.into()), "the host, by IPv6");
    assert_eq!(
        one.netns.reaches(&two.v4(7000)),
        Some(v4.to_ipv6_mapped().into()),
        "a guest, by IPv4"
    );
    assert_eq!(one.netns.reaches(&two.v6(7000)), Some(v6.into()), "a guest, by IPv6");
    assert_eq!(
        one.netns.reaches("192.0.2.1:7000"),
        Some("::ffff:192.0.2.2".parse().unwrap()),
        "outside, as the host"
    );
    assert_eq!(
        one.netns.reaches("[2001:db8::1]:7000"),
        Some("2001:db8::2".parse().unwrap()),
        "outside, as the host, by IPv6"
    );
    assert!(topology.host.reaches(&two.v4(7000)).is_some(), "the host reaches the guest");
}

fn guests_without_peers_are_isolated(_: &mut Sandbox) {
    let topology = Topology::new();
    let alone = topology.guest(1, 1, &Net { peers: false, ..published(TCP_80) });
    let also_alone = topology.guest(1, 2, &Net { peers: false, ..Net::default() });
    let other = topology.guest(1, 3, &Net::default());
    let of_another_root = topology.guest(2, 1, &Net::default());
    let _servers = [&alone, &also_alone, &other, &of_another_root]
        .map(|guest| guest.netns.serve_tcp("[::]:80"));
    for guest in [&also_alone, &other, &of_another_root] {
        for (from, to) in [(guest, &alone), (&alone, guest)] {
            assert!(
                from.netns.is_cut_off_from(&to.v4(80)),
                "{} to {}",
                from.plan.host_if,
                to.plan.host_if
            );
            assert!(
                from.netns.is_cut_off_from(&to.v6(80)),
                "{} to {}",
                from.plan.host_if,
                to.plan.host_if
            );
        }
        assert!(guest.netns.is_cut_off_from("192.0.2.2:8080"), "nor by a published port");
    }
    // One packet alone, which wants no answer; the host's comes after it.
    let send = |netns: &TestNetns, to: String| {
        netns.with(|| UdpSocket::bind("0.0.0.0:0").unwrap().send_to(b"?", to)).unwrap();
    };
    for (from, to) in [(&alone, &other), (&other, &alone)] {
        let heard = to.netns.with(|| UdpSocket::bind("0.0.0.0:9").unwrap());
        heard.set_read_timeout(Some(PATIENCE)).unwrap();
        send(&from.netns, to.v4(9));
        send(&topology.host, to.v4(9));
        let (_, sender) = heard.recv_from(&mut [0; 8]).unwrap();
        assert_ne!(sender.ip(), from.plan.guest_v4, "it is dropped");
    }
    assert!(alone.netns.reaches("192.0.2.2:8080").is_some(), "its own published port");
    assert!(topology.outside.reaches("192.0.2.2:8080").is_some());
    assert!(other.netns.reaches(&of_another_root.v4(80)).is_some());
}

fn other_instances_are_other_guests(_: &mut Sandbox) {
    let topology = Topology::new();
    let one = topology.guest(1, 1, &published(&[(None, 8081, 80, Proto::Tcp)]));
    let two = topology.guest(2, 1, &published(&[(None, 8082, 80, Proto::Tcp)]));
    let _servers = [one.netns.serve_tcp("[::]:80"), two.netns.serve_tcp("[::]:80")];
    assert!(topology.outside.reaches("192.0.2.2:8081").is_some());
    assert!(topology.outside.reaches("192.0.2.2:8082").is_some());
    assert!(one.netns.reaches("192.0.2.2:8082").is_some());
    assert!(two.netns.reaches(&one.v6(80)).is_some());
    topology.host.with(|| net::detach_unrecorded(1, 1).unwrap());
    assert!(topology.outside.is_cut_off_from("192.0.2.2:8081"));
    assert!(topology.outside.reaches("192.0.2.2:8082").is_some());
    assert_eq!(topology.host.with(|| net::attached_contexts(1).unwrap()), Vec::<u32>::new());
    assert_eq!(topology.host.with(|| net::attached_contexts(2).unwrap()), [1]);
}

fn guests_cannot_spoof_addresses(_: &mut Sandbox) {
    let topology = Topology::new();
    let with_host = Net { host_access: true, ..Net::default() };
    let (honest, liar) = (topology.guest(1, 1, &Net::default()), topology.guest(1, 2, &with_host));
    let socket = topology.host.with(|| UdpSocket::bind("[::]:7000").unwrap());
    socket.set_read_timeout(Some(SILENCE)).unwrap();
    let send = |from: &str, to: &str| {
        liar.netns.with(|| {
            let sender = UdpSocket::bind(from).unwrap();
            sender.send_to(b"?", to).unwrap();
        });
        socket.recv_from(&mut [0; 8]).is_ok()
    };
    liar.netns.sh(&format!(
        "ip addr add {}/32 dev eth0; ip addr add 203.0.113.5/32 dev eth0; ip addr add 192.0.2.1/32 dev eth0
         ip addr add {}/128 dev eth0 nodad; ip addr add 2001:db8::1/128 dev eth0 nodad",
        honest.plan.guest_v4,
        honest.plan.guest_v6.unwrap()
    ));
    assert!(
        send(&liar.v4(0), "192.0.2.2:7000") && send(&liar.v6(0), "[2001:db8::2]:7000"),
        "its own"
    );
    for stolen in [honest.v4(0), "203.0.113.5:0".to_owned(), "192.0.2.1:0".to_owned()] {
        assert!(!send(&stolen, "192.0.2.2:7000"), "{stolen}");
    }
    for stolen in [honest.v6(0), "[2001:db8::1]:0".to_owned()] {
        assert!(!send(&stolen, "[2001:db8::2]:7000"), "{stolen}");
    }
}

fn two_guests_at_one_address_are_refused(_: &mut Sandbox) {
    let topology = Topology::new();
    let address = vec!["203.0.113.9".parse().unwrap()];
    let net = Net { address, ..Net::default() };
    let _one = topology.guest(1, 1, &net);
    let netns = TestNetns::new();
    let error = topology.host.with(|| {
        let plan = net::plan(1, 2, &net).unwrap();
        net::attach(&plan, netns.fd()).unwrap_err().to_string()
    });
    assert!(error.contains("203.0.113.9 is in use"), "{error}");
    assert_eq!(topology.host.with(|| net::attached_contexts(1).unwrap()), [1]);
}

/// The interface of a guest with published ports lets packets to 127.0.0.0/8 through; a guest's
/// must not be among them.
fn loopback_services_of_the_host_stay_private(_: &mut Sandbox) {
    let topology = Topology::new();
    // It may reach those of the host that are not on loopback.
    let net = Net { host_access: true, ..published(TCP_80) };
    let guest = topology.guest(1, 1, &net);
    let _guests = guest.netns.serve_tcp("[::]:80");
    let _server = topology.host.serve_tcp("127.0.0.1:7000");
    let _resolver = topology.host.serve_udp("127.0.0.1:7000");
    assert!(topology.host.reaches("127.0.0.1:7000").is_some());
    let local = "/proc/sys/net/ipv4/conf/h1-1/route_localnet";
    assert_eq!(
        topology.host.sh(&format!("cat {local}")).trim(),
        "1",
        "what makes this test worth its name"
    );
    guest.netns.sh("sysctl -qw net.ipv4.conf.all.route_localnet=1
        ip route del local 127.0.0.0/8 table local; ip addr del 127.0.0.1/8 dev lo
        ip route add 127.0.0.1/32 via 169.254.1.1 dev eth0 onlink src $(ip -4 -o addr show dev eth0 | awk '{sub(\"/.*\", \"\", $4); print $4}')");
    assert!(guest.netns.is_cut_off_from("127.0.0.1:7000"));
    assert_eq!(guest.netns.ask_udp("127.0.0.1:7000", SILENCE), None);
    assert!(topology.host.reaches("127.0.0.1:8080").is_some());
}

fn a_loopback_resolver_of_the_host_is_reached(sandbox: &mut Sandbox) {
    let topology = Topology::new();
    let file = sandbox.root().join("resolv.conf");
    std::fs::write(&file, "nameserver 127.0.0.53\n").unwrap();
    let (guest, text) =
        topology.guest_of_host_with(&file, "/etc/resolv.conf", 1, 1, &Net::default());
    assert!(text.ends_with("\nnameserver 169.254.1.1\n"), "{text}");
    let _resolver = topology.host.serve_udp("127.0.0.53:53");
    let _also_by_tcp = topology.host.serve_tcp("127.0.0.53:53");
    let local = Some("127.0.0.1".parse().unwrap());
    assert_eq!(guest.netns.ask_udp("169.254.1.1:53", PATIENCE), local);
    assert_eq!(guest.netns.reaches("169.254.1.1:53"), local);
}

/// By default a guest opens no connection to the host, at none of its addresses; what the host
/// opens, published ports and ping go on.
fn services_of_the_host_need_a_key(_: &mut Sandbox) {
    let topology = Topology::new();
    let with_host = Net { host_access: true, ..Net::default() };
    let (guest, trusted) =
        (topology.guest(1, 1, &published(TCP_80)), topology.guest(1, 2, &with_host));
    let _servers = [
        topology.host.serve_tcp("[::]:7000"),
        topology.host.serve_udp("169.254.1.1:7000"),
        topology.host.serve_udp("192.0.2.2:7000"),
        topology.host.serve_udp("[2001:db8::2]:7000"),
        guest.netns.serve_tcp("[::]:80"),
    ];
    let addresses = ["169.254.1.1", "192.0.2.2", "[fe80::1%eth0]", "[2001:db8::2]"]
        .map(|at| format!("{at}:7000"));
    for address in &addresses {
        let to = guest.address_of_host(address);
        // A refusal of the kernel to a link-local address may leave by another guest's link.
        let refused = if address.contains('%') {
            guest.netns.ask_tcp_at(to, SILENCE).is_none()
        } else {
            guest.netns.is_refused(to)
        };
        assert!(refused, "{address} by TCP");
        assert_eq!(guest.netns.ask_udp_at(to, SILENCE), None, "{address} by UDP");
        let to = trusted.address_of_host(address);
        assert!(trusted.netns.ask_tcp_at(to, PATIENCE).is_some(), "{address} with the key");
        // A UDP server answers from the address that it is bound to, and fe80::1 is on each link.
        let by_udp = address.contains('%') || trusted.netns.ask_udp_at(to, PATIENCE).is_some();
        assert!(by_udp, "{address} with the key, by UDP");
    }
    assert!(
        topology.host.reaches(&guest.v4(80)).is_some()
            && topology.host.reaches(&guest.v6(80)).is_some()
    );
    for from in [&guest, &trusted] {
        assert!(from.netns.reaches("192.0.2.2:8080").is_some(), "a published port");
        assert!(from.netns.reaches("[2001:db8::2]:8080").is_some(), "a published port, by IPv6");
    }
    for address in ["169.254.1.1", "192.0.2.2", "fe80::1%eth0", "2001:db8::2"] {
        guest.netns.sh(&format!("busybox ping -c 1 -W 60 {address}"));
    }
}

fn guests_without_peers_may_reach_the_host(_: &mut Sandbox) {
    let topology = Topology::new();
    let net = Net { peers: false, host_access: true, ..Net::default() };
    let (alone, other) = (topology.guest(1, 1, &net), topology.guest(1, 2, &Net::default()));
    let _servers = [topology.host.serve_tcp("[::]:7000"), other.netns.serve_tcp("[::]:80")];
    assert!(alone.netns.reaches("192.0.2.2:7000").is_some());
    assert!(alone.netns.reaches("[2001:db8::2]:7000").is_some());
    assert!(alone.netns.is_cut_off_from(&other.v4(80)));
    assert!(alone.netns.is_cut_off_from(&other.v6(80)));
}

/// The guests' name servers are the host's, and one of those may run on the host itself.
fn a_name_server_at_the_hosts_address_is_reached(sandbox: &mut Sandbox) {
    let topology = Topology::new();
    let file = sandbox.root().join("resolv.conf");
    std::fs::write(&file, "nameserver 192.0.2.2\nnameserver 2001:db8::2\n").unwrap();
    let (guest, text) =
        topology.guest_of_host_with(&file, "/etc/resolv.conf", 1, 1, &Net::default());
    assert!(text.ends_with("\nnameserver 192.0.2.2\nnameserver 2001:db8::2\n"), "{text}");
    let _servers = [
        topology.host.serve_udp("192.0.2.2:53"),
        topology.host.serve_udp("[2001:db8::2]:53"),
        topology.host.serve_tcp("[::]:53"),
    ];
    for server in ["192.0.2.2:53", "[2001:db8::2]:53"] {
        assert!(guest.netns.ask_udp(server, PATIENCE).is_some(), "{server}");
        assert!(guest.netns.reaches(server).is_some(), "{server} by TCP");
    }
    assert!(guest.netns.is_cut_off_from("169.254.1.1:53"), "not at other addresses");
}

fn unsolicited_packets_from_outside_are_dropped(_: &mut Sandbox) {
    let topology = Topology::new();
    let hidden = topology.guest(1, 1, &Net::default());
    let address = vec!["203.0.113.9".parse().unwrap(), "2001:db8:9::9".parse().unwrap()];
    let routed = topology.guest(1, 2, &Net { address, ..Net::default() });
    let _servers = [hidden.netns.serve_tcp("[::]:80"), routed.netns.serve_tcp("[::]:80")];
    let echo = topology.outside.serve_tcp("[::]:80");
    topology.outside.sh("ip route add 10.97.0.0/16 via 192.0.2.2; ip route add fd00:686f:6c6d:1::/64 via 2001:db8::2
        ip route add 203.0.113.0/24 via 192.0.2.2; ip route add 2001:db8:9::/64 via 2001:db8::2");
    assert!(topology.outside.is_cut_off_from(&hidden.v4(80)));
    assert!(topology.outside.is_cut_off_from(&hidden.v6(80)));
    assert!(
        topology.outside.reaches(&routed.v4(80)).is_some(),
        "an address set by hand is routed as it is"
    );
    assert!(topology.outside.reaches(&routed.v6(80)).is_some());
    let seen = routed.netns.reaches("192.0.2.1:80");
    assert_eq!(
        seen,
        Some("::ffff:203.0.113.9".parse().unwrap()),
        "and not hidden behind the host's"
    );
    drop(echo);
}

/// Messages that would change the host's routes, which some hosts believe: router advertisements
/// and redirects. Each is followed by a harmless one, after which nothing can come any more.
fn guests_play_no_router_for_the_host(_: &mut Sandbox) {
    const HARMLESS_4: u8 = 253;
    const HARMLESS_6: u8 = 200;
    let topology = Topology::new();
    let guest = topology.guest(1, 1, &Net { host_access: true, ..Net::default() });
    for (family, protocol, to, kinds) in [
        (AddressFamily::INET, ipproto::ICMP, "192.0.2.2:0", [5, HARMLESS_4].as_slice()),
        (AddressFamily::INET6, ipproto::ICMPV6, "[2001:db8::2]:0", &[134, 137, HARMLESS_6]),
    ] {
        let raw = || socket(family, SocketType::RAW, Some(protocol)).expect("a raw socket");
        let heard = topology.host.with(raw);
        sockopt::set_socket_timeout(&heard, sockopt::Timeout::Recv, Some(PATIENCE)).unwrap();
        let to: std::net::SocketAddr = to.parse().unwrap();
        guest.netns.with(|| {
            let sender = raw();
            for &kind in kinds {
                // The checksum of the rest, zeros: the kernel computes that of ICMPv6 itself.
                let mut message = [0_u8; 40];
                message[0] = kind;
                message[2] = !kind;
                message[3] = 0xff;
                sendto(&sender, &message, SendFlags::empty(), &to).unwrap();
            }
        });
        let harmless = *kinds.last().unwrap();
        let mut seen = Vec::new();
        while seen.last() != Some(&harmless) {
            let mut packet = [0_u8; 256];
            let (length, _) = recv(&heard, &mut packet, RecvFlags::empty()).expect("the last one");
            // IPv4's raw sockets show the header too.
            let at = if family == AddressFamily::INET { 20 } else { 0 };
            let kind = packet[..length][at];
            // What the kernels say to each other is none of this test's.
            if kinds.contains(&kind) {
                seen.push(kind);
            }
        }
        assert_eq!(seen, [harmless], "of {kinds:?}");
    }
}

/// A DHCP server of the host, for its own network, hands out nothing to guests.
fn guests_requests_for_addresses_reach_no_server_of_the_host(_: &mut Sandbox) {
    let topology = Topology::new();
    let guest = topology.guest(1, 1, &Net { host_access: true, ..Net::default() });
    let bind = |address: &str| topology.host.with(|| UdpSocket::bind(address).unwrap());
    let (server, other) = (bind("0.0.0.0:67"), bind("0.0.0.0:6767"));
    server.set_nonblocking(true).unwrap();
    other.set_read_timeout(Some(PATIENCE)).unwrap();
    guest.netns.with(|| {
        let client = UdpSocket::bind("0.0.0.0:68").unwrap();
        for port in [67, 6767] {
            client.send_to(b"?", ("192.0.2.2", port)).unwrap();
        }
    });
    other.recv_from(&mut [0; 8]).expect("the second, after which the first does not come");
    let error = server.recv_from(&mut [0; 8]).expect_err("a guest's request reached the server");
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
}
