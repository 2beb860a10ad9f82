//! Tables of the kernel that all network namespaces share, or that the host keeps for its guests:
//! what one guest does to them must not reach the others.

use std::fs;
use std::net::UdpSocket;
use std::time::Duration;

use holm::config::Net;

use super::topology::{Host, SILENCE, TestNetns, Topology};
use crate::options::Lane;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

const SLOW: &str = "counting thousands of connections takes an emulated machine minutes";
const WHOLE: &str = "it fills the neighbour table of the whole machine";

pub const TESTS: &[Test] = &[
    test!(neighbours_are_permanent),
    test!(connections_of_a_guest_are_bounded).not_in(Lane::Vm, SLOW),
    test!(connections_of_a_native_guest_are_bounded).bases(&["busybox"]).not_in(Lane::Vm, SLOW),
    test!(native_guests_are_bounded_while_the_host_tracks).bases(&["busybox"]),
    test!(a_full_neighbour_table_harms_no_other_guest).alone().not_in(Lane::Host, WHOLE),
    test!(a_native_guests_flood_leaves_the_host_its_router)
        .bases(&["busybox"])
        .alone()
        .not_in(Lane::Host, WHOLE),
];

/// How long a connection may take while the table is full.
const PATIENCE_FULL: Duration = Duration::from_secs(15);

/// The sizes of the machine's neighbour tables, of IPv4 and IPv6 alike.
struct Thresholds([u32; 3]);

impl Thresholds {
    fn file(family: u8, number: usize) -> String {
        format!("/proc/sys/net/ipv{family}/neigh/default/gc_thresh{number}")
    }

    fn read() -> Self {
        let number = |number| fs::read_to_string(Self::file(4, number)).unwrap();
        Self([1, 2, 3].map(|at| number(at).trim().parse().unwrap()))
    }

    fn write(&self) {
        for family in [4, 6] {
            for (at, value) in self.0.iter().enumerate() {
                fs::write(Self::file(family, at + 1), value.to_string()).unwrap();
            }
        }
    }
}

fn neighbours_are_permanent(_: &mut Sandbox) {
    let topology = Topology::new();
    let guest = topology.guest(1, 5, &Net::default());
    let permanent = "ip -o neigh show nud permanent | sort";
    let link_local = guest.plan.guest_link_local();
    let outside = topology.host.sh(permanent);
    for address in ["10.97.0.5 ", "fd00:686f:6c6d:1::5 ", &format!("{link_local} ")] {
        let line = format!("{address}dev h1-5 lladdr 02:68:67:01:00:05");
        assert!(outside.contains(&line), "{outside}");
    }
    let gateways = guest.netns.sh(permanent);
    for address in ["169.254.1.1", "fe80::1"] {
        let line = format!("{address} dev eth0 lladdr 02:68:68:01:00:05");
        assert!(gateways.contains(&line), "{gateways}");
    }
    // What a guest's network manager may do to the interface: it asks for its neighbours then.
    let _server = topology.outside.serve_tcp("[::]:7000");
    guest.netns.sh(&format!(
        "ip link set eth0 down; ip neigh flush all nud permanent; ip link set eth0 up
        ip addr replace {}/128 dev eth0 nodad; ip addr replace {link_local}/64 dev eth0 nodad
        ip route replace 169.254.1.1 dev eth0; ip route replace default via 169.254.1.1
        ip route replace default via fe80::1 dev eth0",
        guest.plan.guest_v6.unwrap()
    ));
    assert!(guest.netns.reaches("192.0.2.1:7000").is_some());
    assert!(guest.netns.reaches("[2001:db8::1]:7000").is_some());
    assert_eq!(topology.host.sh(permanent), outside, "a link that was down loses none on the host");
}

/// A guest asks in its own network namespace for more neighbours than the kernel keeps, and gets no
/// answer; another guest is started meanwhile.
fn a_full_neighbour_table_harms_no_other_guest(_: &mut Sandbox) {
    let topology = Topology::new();
    let attacker = topology.guest(1, 1, &Net::default());
    let before = topology.guest(1, 2, &Net::default());
    let _servers = [before.netns.serve_tcp("[::]:80"), topology.outside.serve_tcp("[::]:80")];
    let (limits, small) = (Thresholds::read(), Thresholds([64, 128, 256]));
    attacker.netns.sh("ip link add va type veth peer name vb; ip link set va up; ip link set vb up
        ip addr add 10.200.0.1/16 dev va; ip -6 addr add fd22::1/64 dev va nodad
        for f in 4 6; do
          echo 600000 >/proc/sys/net/ipv$f/neigh/va/retrans_time_ms
          echo 1000 >/proc/sys/net/ipv$f/neigh/va/mcast_solicit
        done");
    small.write();
    let unresolved = attacker.netns.with(|| {
        let mut sockets = Vec::new();
        for number in 1..=400u16 {
            let to = [
                format!("10.200.{}.{}:9", 1 + number / 200, 1 + number % 200),
                format!("[fd22::2:{number}]:9"),
            ];
            for (from, to) in ["0.0.0.0:0", "[::]:0"].into_iter().zip(to) {
                let socket = UdpSocket::bind(from).unwrap();
                // An error is what a full table gives.
                let _ = socket.send_to(b"?", to);
                sockets.push(socket);
            }
        }
        sockets
    });
    let restarted = topology.guest(1, 3, &Net::default());
    let _server = restarted.netns.serve_tcp("[::]:80");
    let reached = [
        restarted.netns.ask_tcp(&before.v4(80), PATIENCE_FULL),
        restarted.netns.ask_tcp(&before.v6(80), PATIENCE_FULL),
        before.netns.ask_tcp(&restarted.v4(80), PATIENCE_FULL),
        before.netns.ask_tcp(&restarted.v6(80), PATIENCE_FULL),
        topology.host.ask_tcp(&restarted.v4(80), PATIENCE_FULL),
    ];
    let log = topology.host.sh("dmesg | grep -c 'neighbour: .*table overflow'");
    limits.write();
    drop(unresolved);
    assert!(reached.iter().all(Option::is_some), "{reached:?}");
    assert_ne!(log.trim(), "0", "the table was full");
}

/// Datagrams to many addresses of a network that the host is in. What the host has not asked before
/// may not be found meanwhile; a managed entry, as docs/security.md recommends for the router, is.
fn a_native_guests_flood_leaves_the_host_its_router(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let topology = &host.topology;
    topology.host.sh("ip addr add 10.66.0.1/16 dev up0
        ip neigh replace 192.0.2.1 dev up0 extern_learn managed");
    let _server = topology.outside.serve_tcp("[::]:80");
    let mount = format!("mounts+={}:/probe:ro", sandbox.probe_directory().display());
    let settings = ["net.mode=native", "net.address=192.0.2.10", &mount];
    let (limits, small) = (Thresholds::read(), Thresholds([64, 128, 256]));
    host.run("flood", &settings, &["/probe/holm-probe", "flood-addresses", "10.66.0.0"]).ok();
    small.write();
    // On each CPU `table_fulls`, the last of its line.
    let overflows = || {
        let text = fs::read_to_string("/proc/net/stat/arp_cache").unwrap();
        let fulls = text.lines().skip(1).map(|line| line.rsplit(' ').next().unwrap().to_owned());
        fulls.collect::<Vec<_>>()
    };
    let before = overflows();
    let full = sandbox.wait_for("a full table", || {
        let now = overflows();
        (now != before).then_some(now)
    });
    let reached: Vec<_> =
        (0..5).map(|_| topology.host.ask_tcp("192.0.2.1:80", PATIENCE_FULL)).collect();
    let entries = topology.host.sh("ip neigh show dev up0 | wc -l");
    let fresh = topology.host.sh("ping -c 3 -W 1 10.66.255.9 | tail -3; ip neigh show 192.0.2.1");
    limits.write();
    println!("{full:?}\n{entries}{fresh}");
    assert!(reached.iter().all(Option::is_some), "{reached:?}");
    host.holm(&["rm", "--force", "flood"]).ok();
}

/// A guest opens more connections than it may have, as UDP packets to many ports outside; the table
/// is that of the test's own network namespace.
fn connections_of_a_guest_are_bounded(sandbox: &mut Sandbox) {
    const BOUND: u32 = 16384;
    let topology = Topology::new();
    let (flooding, other) =
        (topology.guest(1, 1, &Net::default()), topology.guest(1, 2, &Net::default()));
    let _server = topology.outside.serve_tcp("[::]:80");
    // It drops them: answers would only make the test slower.
    topology.outside.sh("nft add table inet t
        nft 'add chain inet t in { type filter hook prerouting priority raw; }'
        nft add rule inet t in udp dport 1024-65535 drop");
    // Or those of the first packets would be gone before the last are sent, beside a load.
    topology.host.sh("sysctl -qw net.netfilter.nf_conntrack_udp_timeout=3600");
    let tracked = || {
        let text = topology.host.sh("cat /proc/sys/net/netfilter/nf_conntrack_count");
        text.trim().parse::<u32>().unwrap()
    };
    let flood = |ports: std::ops::Range<u16>| {
        flooding.netns.with(|| {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            for port in ports {
                // A full queue is no error here: what is tracked is counted below.
                let _ = socket.send_to(b"?", ("192.0.2.1", port));
            }
        });
    };
    sandbox.wait_for("the guest has as many connections as it may", || {
        flood(20000..38000);
        (tracked() >= BOUND).then_some(())
    });
    assert!(flooding.netns.is_cut_off_from("192.0.2.1:80"), "it is refused");
    topology.host.sh("nft add table ip docker
        nft 'add chain ip docker pre { type nat hook prerouting priority -110; }'
        nft add rule ip docker pre ip daddr 192.0.2.9 dnat to 192.0.2.1");
    assert!(other.netns.reaches("192.0.2.9:80").is_some(), "another program translates this");
    assert!(flooding.netns.is_cut_off_from("192.0.2.9:80"), "and it is refused there too");
    flood(38000..42000);
    let count = tracked();
    assert!((BOUND..BOUND + 100).contains(&count), "{count} are tracked");
    assert!(other.netns.reaches("192.0.2.1:80").is_some(), "another guest is not");
    assert!(topology.host.reaches("192.0.2.1:80").is_some(), "nor the host");
    // The kernel forgets the connections that it masqueraded by an interface that goes down.
    topology.host.sh("ip link set up0 down; ip link set up0 up");
    sandbox.wait_for("connections that are gone count no more", || {
        flooding.netns.ask_tcp("192.0.2.1:80", SILENCE)
    });
}

const NATIVE: &[&str] =
    &["net.mode=native", "net.address=192.0.2.10,2001:db8::10", "net.interface=up0"];

/// Has the host track connections, as another program would, and open one.
fn track(host: &TestNetns) {
    host.sh("nft add table inet other
        nft 'add chain inet other in { type filter hook input priority filter; }'
        nft add rule inet other in ct state invalid drop");
    host.with(|| UdpSocket::bind("0.0.0.0:0").unwrap().send_to(b"?", "192.0.2.1:9").unwrap());
}

fn connections_of_a_native_guest_are_bounded(sandbox: &mut Sandbox) {
    const BOUND: u32 = 16384;
    let host = Host::new(sandbox);
    let Topology { host: machine, outside } = &host.topology;
    machine.sh("ip addr add 192.0.2.11/32 dev up0");
    track(machine);
    // Or those of the first packets would be gone before the last are sent, beside a load.
    machine.sh("sysctl -qw net.netfilter.nf_conntrack_udp_timeout=3600");
    let _server = outside.serve_tcp("[::]:80");
    outside.sh("nft add table inet t
        nft 'add chain inet t in { type filter hook prerouting priority raw; }'
        nft add rule inet t in udp dport 1024-65535 drop");
    let mount = format!("mounts+={}:/probe:ro", sandbox.probe_directory().display());
    host.run("flooding", &[NATIVE, &[&mount]].concat(), &["sleep", "3600"]).ok();
    host.run("other", &["net.mode=native", "net.address=192.0.2.11"], &["sleep", "3600"]).ok();
    let tracked = || {
        let text = machine.sh("cat /proc/sys/net/netfilter/nf_conntrack_count");
        text.trim().parse::<u32>().unwrap()
    };
    let reaches = |name: &str| {
        let connect = ["exec", name, "--", "nc", "-w", "2", "192.0.2.1", "80"];
        host.holm(&connect).code() == 0
    };
    let flood =
        ["exec", "flooding", "--", "/probe/holm-probe", "flood-ports", "192.0.2.1", "18000"];
    sandbox.wait_for("the guest has as many connections as it may", || {
        host.holm(&flood).ok();
        (tracked() >= BOUND).then_some(())
    });
    let count = tracked();
    assert!((BOUND..BOUND + 100).contains(&count), "{count} are tracked");
    assert!(!reaches("flooding"), "it is refused");
    assert!(reaches("other"), "another guest is not");
    assert!(machine.reaches("192.0.2.1:80").is_some(), "nor the host");
    host.holm(&["rm", "--force", "--all"]).ok();
}

fn native_guests_are_bounded_while_the_host_tracks(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let has_table = || host.topology.host.sh("nft list tables").contains("-native");
    let said = "connections of native guests are bounded now";
    host.run("one", NATIVE, &["sleep", "3600"]).ok();
    assert!(!has_table(), "nobody tracks connections");
    track(&host.topology.host);
    // Seen from another network namespace nothing is missing.
    let printed = host.topology.outside.with(|| host.sandbox.holm(&["ls"])).ok();
    assert!(!printed.stderr.contains(said) && !has_table(), "{printed}");
    assert!(host.holm(&["ls"]).ok().stderr.contains(said));
    assert!(has_table());
    assert!(!host.holm(&["ls"]).ok().stderr.contains(said));
    host.topology.host.sh("nft flush ruleset");
    track(&host.topology.host);
    host.run("two", &["net.mode=native"], &["sleep", "3600"]).ok();
    assert!(has_table(), "the next start");
    host.holm(&["rm", "--force", "two"]).ok();
    assert!(has_table(), "one runs");
    host.holm(&["rm", "--force", "one"]).ok();
    assert!(!has_table(), "nobody needs it");
    // Holm itself has the host track them.
    host.topology.host.sh("nft flush ruleset");
    host.run("one", NATIVE, &["sleep", "3600"]).ok();
    host.topology.host.sh("nft delete table inet $(nft list tables | sed -n 's/.* //p') || true");
    host.run("private", &[], &["sleep", "3600"]).ok();
    assert!(has_table(), "a private guest");
    host.holm(&["rm", "--force", "private"]).ok();
    host.topology.host.sh("nft flush ruleset");
    host.holm(&["set", "one", "net.deny=out:tcp:25"]).ok();
    assert!(has_table(), "net.deny");
    host.holm(&["rm", "--force", "--all"]).ok();
    assert!(!has_table());
}
