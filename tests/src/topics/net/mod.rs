//! Private networks with real traffic, as root, in network namespaces made for each test.

mod world;

use holm::config::{Net, Proto, Publish};
use holm::net;

use self::world::World;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(a_guest_talks_to_its_host_to_others_and_outside),
    test!(published_ports_answer_everywhere),
];

fn published(ports: &[(Option<&str>, u16, u16, Proto)]) -> Net {
    let publish = ports
        .iter()
        .map(|&(ip, host_port, guest_port, proto)| Publish {
            host_ip: ip.map(|ip| ip.parse().unwrap()),
            host_port,
            guest_port,
            proto,
        })
        .collect();
    Net { publish, ..Net::default() }
}

fn a_guest_talks_to_its_host_to_others_and_outside(_: &mut Sandbox) {
    let world = World::new();
    let (one, two) = (world.guest(1, 1, &Net::default()), world.guest(1, 2, &Net::default()));
    let _servers = [
        world.host.serve_tcp("[::]:7000"),
        world.outside.serve_tcp("[::]:7000"),
        two.space.serve_tcp("[::]:7000"),
    ];
    assert_eq!(one.plan.mtu, 1400);
    let (v4, v6) = (one.plan.guest_v4, one.plan.guest_v6.unwrap());
    assert_eq!(
        one.space.reaches("192.0.2.2:7000"),
        Some(v4.to_ipv6_mapped().into()),
        "the host, by IPv4"
    );
    assert_eq!(one.space.reaches("[2001:db8::2]:7000"), Some(v6.into()), "the host, by IPv6");
    assert_eq!(
        one.space.reaches(&two.v4(7000)),
        Some(v4.to_ipv6_mapped().into()),
        "a guest, by IPv4"
    );
    assert_eq!(one.space.reaches(&two.v6(7000)), Some(v6.into()), "a guest, by IPv6");
    assert_eq!(
        one.space.reaches("192.0.2.1:7000"),
        Some("::ffff:192.0.2.2".parse().unwrap()),
        "outside, as the host"
    );
    assert_eq!(
        one.space.reaches("[2001:db8::1]:7000"),
        Some("2001:db8::2".parse().unwrap()),
        "outside, as the host, by IPv6"
    );
    assert!(world.host.reaches(&two.v4(7000)).is_some(), "the host reaches the guest");
}

fn published_ports_answer_everywhere(_: &mut Sandbox) {
    let world = World::new();
    let net = published(&[(None, 8080, 80, Proto::Tcp), (None, 5353, 53, Proto::Udp)]);
    let guest = world.guest(1, 5, &net);
    let other = world.guest(1, 6, &Net::default());
    let _servers = [guest.space.serve_tcp("[::]:80"), guest.space.serve_udp("[::]:53")];
    for from in [&world.host, &world.outside, &other.space, &guest.space] {
        assert!(from.reaches("192.0.2.2:8080").is_some());
        assert!(from.reaches("[2001:db8::2]:8080").is_some());
    }
    assert!(world.host.reaches("127.0.0.1:8080").is_some());
    let patience = std::time::Duration::from_secs(5);
    for (from, to) in [
        (&world.host, "127.0.0.1:5353"),
        (&world.host, "192.0.2.2:5353"),
        (&world.outside, "192.0.2.2:5353"),
        (&world.outside, "[2001:db8::2]:5353"),
    ] {
        assert!(from.ask_udp(to, patience).is_some(), "{to}");
    }
    world.host.with(|| net::detach(1, 5).unwrap());
    assert!(world.outside.is_cut_off_from("192.0.2.2:8080"));
}
