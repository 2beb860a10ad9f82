//! Private networks with real traffic, as root, in network namespaces made for each test.

mod world;

use holm::config::{Net, Proto, Publish};
use holm::net;

use self::world::{PATIENCE, World};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(a_guest_talks_to_its_host_to_others_and_outside),
    test!(published_ports_answer_everywhere),
    test!(ports_published_on_one_address_answer_there_only),
    test!(taken_ports_name_their_owner),
    test!(guests_without_peers_are_alone),
    test!(other_instances_are_other_guests),
    test!(guests_cannot_borrow_addresses),
    test!(loopback_services_of_the_host_stay_private),
    test!(nobody_outside_reaches_a_guest_unasked),
    test!(flushed_rules_come_back_with_the_ports),
    test!(a_look_makes_flushed_rules_again).bases(&["busybox"]),
    test!(detaching_leaves_nothing),
    test!(a_dead_guests_interface_is_replaced),
    test!(ports_of_a_dead_guest_are_freed),
    test!(a_forgotten_guest_frees_its_ports_at_once),
    test!(a_loopback_resolver_of_the_host_is_reached),
    test!(foreign_rules_stay_and_blocking_ones_are_found),
    test!(dhcp_is_answered),
    test!(router_solicitations_are_answered),
    test!(two_guests_at_one_address_are_refused),
    test!(forwarding_keeps_advertised_routes),
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
    for (from, to) in [
        (&world.host, "127.0.0.1:5353"),
        (&world.host, "192.0.2.2:5353"),
        (&world.outside, "192.0.2.2:5353"),
        (&world.outside, "[2001:db8::2]:5353"),
    ] {
        assert!(from.ask_udp(to, PATIENCE).is_some(), "{to}");
    }
    world.host.with(|| net::detach_unrecorded(1, 5).unwrap());
    assert!(world.outside.is_cut_off_from("192.0.2.2:8080"));
}

const TCP_80: &[(Option<&str>, u16, u16, Proto)] = &[(None, 8080, 80, Proto::Tcp)];

fn ports_published_on_one_address_answer_there_only(_: &mut Sandbox) {
    let world = World::new();
    let net = published(&[
        (Some("127.0.0.1"), 8080, 80, Proto::Tcp),
        (Some("192.0.2.2"), 8081, 80, Proto::Tcp),
        (Some("2001:db8::2"), 8082, 80, Proto::Tcp),
    ]);
    let guest = world.guest(1, 1, &net);
    let _server = guest.space.serve_tcp("[::]:80");
    assert!(world.host.reaches("127.0.0.1:8080").is_some());
    assert!(world.outside.is_cut_off_from("192.0.2.2:8080"));
    assert!(world.host.is_cut_off_from("192.0.2.2:8080"));
    assert!(world.outside.reaches("192.0.2.2:8081").is_some());
    assert!(world.host.is_cut_off_from("127.0.0.1:8081"));
    assert!(world.outside.reaches("[2001:db8::2]:8082").is_some());
    assert!(world.outside.is_cut_off_from("192.0.2.2:8082"));
}

fn taken_ports_name_their_owner(_: &mut Sandbox) {
    let world = World::new();
    let listener = world.host.with(|| std::net::TcpListener::bind("127.0.0.1:8080").unwrap());
    let refuse = |instance, context, ports: &[_]| {
        world.host.with(|| net::plan(instance, context, &published(ports)).unwrap_err().to_string())
    };
    let error = refuse(1, 1, TCP_80);
    let pid = std::process::id();
    assert!(error.contains("8080/tcp") && error.contains(&format!("(pid {pid})")), "{error}");
    drop(listener);
    let _guest = world.guest(1, 1, &published(TCP_80));
    let error = refuse(2, 9, &[(Some("192.0.2.2"), 8080, 1, Proto::Tcp)]);
    assert!(error.contains("publishes it already"), "{error}");
    world.host.with(|| net::plan(2, 9, &published(&[(None, 8080, 80, Proto::Udp)])).unwrap());
    let error = refuse(1, 2, &[(Some("192.0.2.77"), 9000, 1, Proto::Tcp)]);
    assert!(error.contains("no address 192.0.2.77"), "{error}");
    let error =
        refuse(1, 2, &[(None, 9000, 1, Proto::Tcp), (Some("127.0.0.1"), 9000, 2, Proto::Tcp)]);
    assert!(error.contains("this guest itself"), "{error}");
    // The same guest again, after its end was not noticed: its own interface does not stand in its way.
    world.host.with(|| net::plan(1, 1, &published(TCP_80)).unwrap());
}

fn guests_without_peers_are_alone(_: &mut Sandbox) {
    let world = World::new();
    let alone = world.guest(1, 1, &Net { peers: false, ..published(TCP_80) });
    let also_alone = world.guest(1, 2, &Net { peers: false, ..Net::default() });
    let other = world.guest(1, 3, &Net::default());
    let of_another_root = world.guest(2, 1, &Net::default());
    let _servers = [&alone, &also_alone, &other, &of_another_root]
        .map(|guest| guest.space.serve_tcp("[::]:80"));
    for guest in [&also_alone, &other, &of_another_root] {
        for (from, to) in [(guest, &alone), (&alone, guest)] {
            assert!(
                from.space.is_cut_off_from(&to.v4(80)),
                "{} to {}",
                from.plan.host_if,
                to.plan.host_if
            );
            assert!(
                from.space.is_cut_off_from(&to.v6(80)),
                "{} to {}",
                from.plan.host_if,
                to.plan.host_if
            );
        }
        assert!(guest.space.is_cut_off_from("192.0.2.2:8080"), "nor by a published port");
    }
    assert!(alone.space.reaches("192.0.2.2:8080").is_some(), "its own published port");
    assert!(world.outside.reaches("192.0.2.2:8080").is_some());
    assert!(other.space.reaches(&of_another_root.v4(80)).is_some());
}

fn other_instances_are_other_guests(_: &mut Sandbox) {
    let world = World::new();
    let one = world.guest(1, 1, &published(&[(None, 8081, 80, Proto::Tcp)]));
    let two = world.guest(2, 1, &published(&[(None, 8082, 80, Proto::Tcp)]));
    let _servers = [one.space.serve_tcp("[::]:80"), two.space.serve_tcp("[::]:80")];
    assert!(world.outside.reaches("192.0.2.2:8081").is_some());
    assert!(world.outside.reaches("192.0.2.2:8082").is_some());
    assert!(one.space.reaches("192.0.2.2:8082").is_some());
    assert!(two.space.reaches(&one.v6(80)).is_some());
    world.host.with(|| net::detach_unrecorded(1, 1).unwrap());
    assert!(world.outside.is_cut_off_from("192.0.2.2:8081"));
    assert!(world.outside.reaches("192.0.2.2:8082").is_some());
    assert_eq!(world.host.with(|| net::leftovers(1).unwrap()), Vec::<u32>::new());
    assert_eq!(world.host.with(|| net::leftovers(2).unwrap()), [1]);
}

fn guests_cannot_borrow_addresses(_: &mut Sandbox) {
    let world = World::new();
    let (honest, liar) = (world.guest(1, 1, &Net::default()), world.guest(1, 2, &Net::default()));
    let socket = world.host.with(|| std::net::UdpSocket::bind("[::]:7000").unwrap());
    socket.set_read_timeout(Some(world::SILENCE)).unwrap();
    let send = |from: &str, to: &str| {
        liar.space.with(|| {
            let sender = std::net::UdpSocket::bind(from).unwrap();
            sender.send_to(b"?", to).unwrap();
        });
        socket.recv_from(&mut [0; 8]).is_ok()
    };
    liar.space.sh(&format!(
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

/// The interface of a guest with published ports lets packets to 127.0.0.0/8 through; a guest's must not be among them.
fn loopback_services_of_the_host_stay_private(_: &mut Sandbox) {
    let world = World::new();
    let guest = world.guest(1, 1, &published(TCP_80));
    let _guests = guest.space.serve_tcp("[::]:80");
    let _server = world.host.serve_tcp("127.0.0.1:7000");
    let _resolver = world.host.serve_udp("127.0.0.1:7000");
    assert!(world.host.reaches("127.0.0.1:7000").is_some());
    let local = "/proc/sys/net/ipv4/conf/h1-1/route_localnet";
    assert_eq!(
        world.host.sh(&format!("cat {local}")).trim(),
        "1",
        "what makes this test worth its name"
    );
    guest.space.sh("sysctl -qw net.ipv4.conf.all.route_localnet=1
        ip route del local 127.0.0.0/8 table local; ip addr del 127.0.0.1/8 dev lo
        ip route add 127.0.0.1/32 via 169.254.1.1 dev eth0 onlink src $(ip -4 -o addr show dev eth0 | awk '{sub(\"/.*\", \"\", $4); print $4}')");
    assert!(guest.space.is_cut_off_from("127.0.0.1:7000"));
    assert_eq!(guest.space.ask_udp("127.0.0.1:7000", world::SILENCE), None);
    assert!(world.host.reaches("127.0.0.1:8080").is_some());
}

fn nobody_outside_reaches_a_guest_unasked(_: &mut Sandbox) {
    let world = World::new();
    let hidden = world.guest(1, 1, &Net::default());
    let address = vec!["203.0.113.9".parse().unwrap(), "2001:db8:9::9".parse().unwrap()];
    let routed = world.guest(1, 2, &Net { address, ..Net::default() });
    let _servers = [hidden.space.serve_tcp("[::]:80"), routed.space.serve_tcp("[::]:80")];
    let echo = world.outside.serve_tcp("[::]:80");
    world.outside.sh("ip route add 10.97.0.0/16 via 192.0.2.2; ip route add fd00:686f:6c6d:1::/64 via 2001:db8::2
        ip route add 203.0.113.0/24 via 192.0.2.2; ip route add 2001:db8:9::/64 via 2001:db8::2");
    assert!(world.outside.is_cut_off_from(&hidden.v4(80)));
    assert!(world.outside.is_cut_off_from(&hidden.v6(80)));
    assert!(
        world.outside.reaches(&routed.v4(80)).is_some(),
        "an address set by hand is routed as it is"
    );
    assert!(world.outside.reaches(&routed.v6(80)).is_some());
    let seen = routed.space.reaches("192.0.2.1:80");
    assert_eq!(
        seen,
        Some("::ffff:203.0.113.9".parse().unwrap()),
        "and not hidden behind the host's"
    );
    drop(echo);
}

fn flushed_rules_come_back_with_the_ports(_: &mut Sandbox) {
    let world = World::new();
    let guest = world.guest(1, 1, &published(TCP_80));
    let _server = guest.space.serve_tcp("[::]:80");
    let rules = world.host.sh("nft list ruleset");
    world.host.sh("nft flush ruleset");
    assert!(world.outside.is_cut_off_from("192.0.2.2:8080"));
    let _another = world.guest(1, 2, &Net::default());
    assert!(world.outside.reaches("192.0.2.2:8080").is_some());
    assert_eq!(world.host.sh("nft list ruleset"), rules);
}

/// The whole command, on a host of its own network: `ls` and `status` make the rules again, once, and say so.
fn a_look_makes_flushed_rules_again(sandbox: &mut Sandbox) {
    let world = World::new();
    let holm = |words: &[&str]| world.host.with(|| sandbox.holm(words));
    let launch = |name: &str, net: &str| {
        let words = ["--base", "busybox", "--net", net, "--", "sleep", "100000"];
        holm(&[&["launch", name][..], &words].concat()).ok();
    };
    launch("alone", "none");
    holm(&["ls"]).ok();
    assert!(!world.host.sh("nft list tables").contains("holm-"), "nobody needs rules");
    launch("web", "private");
    let rules = world.host.sh("nft list ruleset");
    assert!(rules.contains("table inet holm-"), "{rules}");
    let said = "the ruleset had been flushed and was restored";
    for (words, stderr) in [
        (&["ls"][..], true),
        (&["ls", "-q"], true),
        (&["status", "web"], false),
        (&["status", "web", "--json"], false),
    ] {
        world.host.sh("nft flush ruleset");
        let told = holm(words).ok();
        assert!(if stderr { &told.stderr } else { &told.stdout }.contains(said), "{told}");
        assert_eq!(world.host.sh("nft list ruleset"), rules, "{words:?}");
        let told = holm(words).ok();
        assert!(!told.stderr.contains(said) && !told.stdout.contains(said), "{told}");
    }
    // Seen from another network namespace nothing is missing.
    let told = world.outside.with(|| sandbox.holm(&["ls"])).ok();
    assert!(!told.stderr.contains("rules"), "{told}");
    assert_eq!(world.outside.sh("nft list tables"), "");
    // A guest without a network is no reason to make them.
    holm(&["stop", "web"]).ok();
    world.host.sh("nft flush ruleset");
    assert!(!holm(&["ls"]).ok().stderr.contains("rules"));
    assert_eq!(world.host.sh("nft list tables"), "");
    holm(&["rm", "--force", "--all"]).ok();
}

fn detaching_leaves_nothing(_: &mut Sandbox) {
    let world = World::new();
    let first = world.guest(1, 1, &Net::default());
    // Names only: states and link-local addresses of other interfaces settle in their own time.
    let look = "ip -br link | cut -d' ' -f1; ip -4 route show table all; ip -6 route show table all | grep h1-2 || true
        nft list ruleset";
    let before = world.host.sh(look);
    let net = published(&[(None, 8080, 80, Proto::Tcp), (Some("127.0.0.1"), 53, 53, Proto::Udp)]);
    let guest = world.guest(1, 2, &net);
    assert_ne!(world.host.sh(look), before);
    world.host.with(|| net::detach_unrecorded(1, 2).unwrap());
    assert_eq!(world.host.sh(look), before);
    world.host.with(|| net::detach_unrecorded(1, 2).unwrap());
    drop((first, guest));
}

fn a_dead_guests_interface_is_replaced(_: &mut Sandbox) {
    let world = World::new();
    let _dead = world.guest(1, 1, &published(TCP_80));
    let again = world.guest(1, 1, &published(&[(None, 8080, 81, Proto::Tcp)]));
    let _server = again.space.serve_tcp("[::]:81");
    assert!(world.outside.reaches("192.0.2.2:8080").is_some());
}

fn ports_of_a_dead_guest_are_freed(sandbox: &mut Sandbox) {
    let world = World::new();
    let living = world.guest(1, 1, &published(&[(None, 8081, 80, Proto::Tcp)]));
    let dead = world.guest(1, 2, &published(TCP_80));
    drop(dead);
    sandbox.wait_for("the dead guest's interface goes", || {
        (world.host.with(|| net::leftovers(1).unwrap()) == [1]).then_some(())
    });
    assert!(world.host.sh("nft list table inet holm-1").contains("8080"), "nobody cleaned up yet");
    world.host.with(|| net::detach_unrecorded(1, 2).unwrap());
    assert!(!world.host.sh("nft list table inet holm-1").contains("8080"));
    let _server = living.space.serve_tcp("[::]:80");
    assert!(world.outside.reaches("192.0.2.2:8081").is_some());
}

/// The interface may outlive the guest a little; the ports must not.
fn a_forgotten_guest_frees_its_ports_at_once(_: &mut Sandbox) {
    let world = World::new();
    let _living = world.guest(1, 1, &published(&[(None, 8081, 80, Proto::Tcp)]));
    let ended = world.guest(1, 2, &published(TCP_80));
    world.host.with(|| net::end(&ended.plan).unwrap());
    let rules = world.host.sh("nft list table inet holm-1");
    assert!(rules.contains("8081") && !rules.contains("8080"), "{rules}");
    let next = world.guest(1, 3, &published(TCP_80));
    world.host.with(|| net::end(&ended.plan).unwrap());
    let _server = next.space.serve_tcp("[::]:80");
    assert!(world.outside.reaches("192.0.2.2:8080").is_some(), "it is the next one's now");
}

fn a_loopback_resolver_of_the_host_is_reached(sandbox: &mut Sandbox) {
    let world = World::new();
    let file = sandbox.root().join("resolv.conf");
    std::fs::write(&file, "nameserver 127.0.0.53\n").unwrap();
    let (guest, text) = world.guest_of_host_with(&file, "/etc/resolv.conf", 1, 1, &Net::default());
    assert!(text.ends_with("\nnameserver 169.254.1.1\n"), "{text}");
    let _resolver = world.host.serve_udp("127.0.0.53:53");
    let _also_by_tcp = world.host.serve_tcp("127.0.0.53:53");
    let local = Some("127.0.0.1".parse().unwrap());
    assert_eq!(guest.space.ask_udp("169.254.1.1:53", PATIENCE), local);
    assert_eq!(guest.space.reaches("169.254.1.1:53"), local);
}

fn foreign_rules_stay_and_blocking_ones_are_found(_: &mut Sandbox) {
    let world = World::new();
    world.host.sh(
        "nft add table ip filter
        nft 'add chain ip filter FORWARD { type filter hook forward priority filter; policy drop; }'
        nft 'add chain ip filter INPUT { type filter hook input priority filter; policy accept; }'",
    );
    let foreign = world.host.sh("nft list table ip filter");
    let guest = world.guest(1, 1, &Net::default());
    let _server = world.outside.serve_tcp("[::]:7000");
    assert!(guest.space.is_cut_off_from("192.0.2.1:7000"));
    let blockers = world.host.with(net::blockers);
    assert_eq!(blockers.len(), 1);
    assert_eq!((blockers[0].table.as_str(), blockers[0].chain.as_str()), ("ip filter", "FORWARD"));
    assert_eq!(world.host.sh("nft list table ip filter"), foreign);
    world.host.sh("nft insert rule ip filter FORWARD iifname 'h*' accept; nft insert rule ip filter FORWARD oifname 'h*' accept");
    assert_eq!(world.host.with(net::blockers), []);
    assert!(guest.space.reaches("192.0.2.1:7000").is_some());
}

fn dhcp_is_answered(_: &mut Sandbox) {
    let world = World::new();
    let net = Net {
        dns: vec!["192.0.2.53".parse().unwrap(), "2001:db8::53".parse().unwrap()],
        ..Net::default()
    };
    let guest = world.guest(1, 9, &net);
    let responder = world.host.with(|| net::responder(&guest.plan).unwrap().unwrap());
    let mut said = String::new();
    let questions = guest.answering(&responder, || {
        // The script is run with "deconfig" and then "bound"; it prints what it was told.
        said = guest
            .space
            .sh("f=$(mktemp); trap 'rm -f $f' EXIT; printf '#!/bin/sh\nenv\n' >$f; chmod +x $f
            busybox udhcpc -i eth0 -n -q -f -t 3 -T 1 -O staticroutes -O mtu -s $f");
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
        guest.space.ask_udp("192.0.2.2:53", world::SILENCE);
        guest.space.ask_tcp("192.0.2.2:67", world::SILENCE);
    });
    assert_eq!(questions, Vec::<Vec<u8>>::new());
}

fn router_solicitations_are_answered(_: &mut Sandbox) {
    let world = World::new();
    let net = Net { dns: vec!["2001:db8::53".parse().unwrap()], ..Net::default() };
    let guest = world.guest(1, 9, &net);
    let responder = world.host.with(|| net::responder(&guest.plan).unwrap().unwrap());
    let address = guest.plan.guest_v6.unwrap();
    // A guest whose manager throws everything away and lets the kernel ask.
    let script = "ip -6 route flush default; sysctl -qw net.ipv6.conf.eth0.accept_ra=2 net.ipv6.conf.eth0.addr_gen_mode=0
        ip link set eth0 down; ip link set eth0 up; sleep 2";
    let questions = guest.answering(&responder, || drop(guest.space.sh(script)));
    assert!(!questions.is_empty(), "no solicitation was heard");
    let routes = guest.space.sh("ip -6 route show default");
    assert!(routes.contains("via fe80::1") && routes.contains("proto ra"), "{routes}");
    let addresses = guest.space.sh("ip -6 -o addr show dev eth0 scope global");
    assert!(addresses.lines().count() <= 1, "no address but its own: {addresses}");
    guest.space.sh(&format!("ip addr replace {address}/128 dev eth0 nodad"));
    let _server = world.outside.serve_tcp("[::]:7000");
    assert!(guest.space.reaches("[2001:db8::1]:7000").is_some());
}

fn two_guests_at_one_address_are_refused(_: &mut Sandbox) {
    let world = World::new();
    let address = vec!["203.0.113.9".parse().unwrap()];
    let net = Net { address, ..Net::default() };
    let _one = world.guest(1, 1, &net);
    let space = world::Space::new();
    let error = world.host.with(|| {
        let plan = net::plan(1, 2, &net).unwrap();
        net::attach(&plan, space.netns()).unwrap_err().to_string()
    });
    assert!(error.contains("203.0.113.9 is in use"), "{error}");
    assert_eq!(world.host.with(|| net::leftovers(1).unwrap()), [1]);
}

fn forwarding_keeps_advertised_routes(_: &mut Sandbox) {
    let world = World::new();
    assert_eq!(world.host.sh("cat /proc/sys/net/ipv6/conf/up0/accept_ra").trim(), "1");
    let _guest = world.guest(1, 1, &Net::default());
    let settings = world.host.sh("cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding /proc/sys/net/ipv6/conf/up0/accept_ra");
    assert_eq!(settings.split_whitespace().collect::<Vec<_>>(), ["1", "1", "2"]);
}
