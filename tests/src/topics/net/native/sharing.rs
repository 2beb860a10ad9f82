//! Native guests that have one IPv4 address together.

use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketType, bind, socket};
use serde_json::Value;

use super::Host;
use crate::process::{kill_hard, process_of};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use crate::topics::net::topology::PATIENCE;

pub const TESTS: &[Test] = &[
    test!(guests_share_an_address).bases(&["busybox"]),
    test!(a_shared_port_is_of_who_has_it).bases(&["busybox"]),
    test!(each_counts_its_own_at_a_shared_address).bases(&["busybox"]),
    test!(an_address_is_shared_by_all).bases(&["busybox"]),
    test!(a_shared_address_stays_with_the_last_guest).bases(&["busybox"]),
];

const ONE: &str = "192.0.2.10,2001:db8::10";
const TWO: &str = "192.0.2.10,2001:db8::20";

impl Host<'_> {
    /// Makes a guest that shares its address, with servers.
    fn create_sharing(&self, name: &str, addresses: &str, settings: &[&str], at: &[&str]) {
        let mount = format!("mounts+={}:/probe:ro", self.probe.display());
        let address = format!("net.address={addresses}");
        let mut args = vec!["create", name, "--base", "busybox", "--net", "native"];
        for setting in [&["net.share-address=true", &address, &mount], settings].concat() {
            args.extend(["--set", setting]);
        }
        let command = [&["--", "/probe/holm-probe", "serve-at", name], at].concat();
        self.holm(&[args, command].concat()).ok();
    }

    fn share(&self, name: &str, addresses: &str, at: &[&str]) {
        self.create_sharing(name, addresses, &[], at);
        self.holm(&["start", name]).ok();
        self.wait_for_servers(name);
    }

    /// What is refused of servers that a guest starts beside its own.
    fn refused_servers(&self, name: &str, at: &[&str]) -> String {
        let serve = ["exec", name, "--", "/probe/holm-probe", "serve-at", "late"];
        self.holm(&[&serve[..], at].concat()).ok().stdout
    }
}

fn guests_share_an_address(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let own = "tcp:127.0.0.1:25";
    host.share("one", ONE, &["tcp:[::]:80", "udp:0.0.0.0:53", "tcp:192.0.2.10:90", own]);
    host.share("two", TWO, &["tcp:[::]:81", "udp:[::]:54", "tcp6:[::]:80", own]);
    let from_outside = |protocol, to: &str| host.ask_from(true, protocol, to);
    for (port, name) in [(80, "one"), (90, "one"), (81, "two")] {
        let answer = format!("{name} asked by 192.0.2.1 at 192.0.2.10");
        assert_eq!(from_outside("tcp", &format!("192.0.2.10:{port}")), answer, "{port}");
    }
    for (port, name) in [(53, "one"), (54, "two")] {
        for protocol in ["udp", "udp-connected"] {
            let answered = from_outside(protocol, &format!("192.0.2.10:{port}"));
            assert_eq!(answered, format!("{name} asked by 192.0.2.1"), "{protocol} {port}");
        }
    }
    // By IPv6 each is reached at its own address, also by sockets that are at the shared one.
    for (at, port, name) in
        [("2001:db8::10", 80, "one"), ("2001:db8::20", 80, "two"), ("2001:db8::20", 81, "two")]
    {
        let answer = format!("{name} asked by 2001:db8::1 at {at}");
        assert_eq!(from_outside("tcp", &format!("[{at}]:{port}")), answer);
    }
    assert_eq!(from_outside("udp", "[2001:db8::20]:54"), "two asked by 2001:db8::1");
    assert_eq!(from_outside("tcp", "[2001:db8::10]:81"), "ConnectionRefused");
    assert_eq!(from_outside("udp-connected", "[2001:db8::10]:54"), "ConnectionRefused");
    for name in ["one", "two"] {
        let answer = format!("{name} asked by 127.0.0.1 at 127.0.0.1");
        assert_eq!(host.ask(name, "tcp", "127.0.0.1:25"), answer);
    }
    let answer = "two asked by 192.0.2.10 at 192.0.2.10";
    assert_eq!(host.ask("one", "tcp", "192.0.2.10:81"), answer);
    assert_eq!(host.ask("one", "udp", "192.0.2.10:54"), "two asked by 192.0.2.10");
    // What no guest has taken is the host's.
    let _server = host.topology.host.with(|| TcpListener::bind("0.0.0.0:8080").unwrap());
    let to = SocketAddr::from(([192, 0, 2, 10], 8080));
    host.topology.outside.with(|| TcpStream::connect_timeout(&to, PATIENCE)).unwrap();
    assert_eq!(from_outside("tcp", "192.0.2.10:8081"), "ConnectionRefused");
    sandbox.holm(&["rm", "--force", "one", "two"]).ok();
}

/// Also by sockets that would let others have their port.
fn a_shared_port_is_of_who_has_it(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let reuse = ["tcp-reuseport:0.0.0.0:90", "udp-reuseport:0.0.0.0:91"];
    let servers = ["tcp:[::]:80", "udp-shared:0.0.0.0:53", "udp-shared:[::]:54"];
    host.share("one", ONE, &[&servers[..], &reuse, &reuse].concat());
    // Its own sockets can share a port, as everywhere.
    host.share("two", TWO, &["udp-shared:0.0.0.0:55", "udp-shared:192.0.2.10:55"]);
    let (_server, resolver) = host.topology.host.with(|| {
        let resolver = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
        set_socket_reuseaddr(&resolver, true).unwrap();
        bind(&resolver, &SocketAddr::from(([0, 0, 0, 0], 67))).unwrap();
        (TcpListener::bind("0.0.0.0:22").unwrap(), UdpSocket::from(resolver))
    });
    // It gets what is sent to its port there, too.
    resolver.set_read_timeout(Some(PATIENCE)).unwrap();
    let client = host.topology.outside.with(|| UdpSocket::bind("0.0.0.0:0").unwrap());
    client.send_to(b"?", "192.0.2.10:67").unwrap();
    assert_eq!(resolver.recv(&mut [0; 8]).unwrap(), 1);
    let all = [
        "tcp:0.0.0.0:80",
        "tcp:192.0.2.10:80",
        "tcp:[::]:80",
        "tcp:0.0.0.0:22",
        "udp-shared:0.0.0.0:53",
        "udp-shared:192.0.2.10:53",
        "udp-shared:0.0.0.0:54",
        "udp-shared:[::]:53",
        "udp-shared:[::ffff:192.0.2.10]:54",
        "udp-shared:0.0.0.0:67",
        reuse[0],
        reuse[1],
    ];
    let refused = host.refused_servers("two", &all);
    let expected = all.map(|at| format!("{at}: AddrInUse"));
    assert_eq!(refused.lines().collect::<Vec<_>>(), expected);
    assert_eq!(host.ask_from(true, "udp", "192.0.2.10:53"), "one asked by 192.0.2.1");
    assert_eq!(host.ask_from(true, "udp", "192.0.2.10:54"), "one asked by 192.0.2.1");
    sandbox.holm(&["rm", "--force", "one", "two"]).ok();
}

fn each_counts_its_own_at_a_shared_address(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.share("one", ONE, &["tcp:0.0.0.0:80"]);
    host.share("two", TWO, &["tcp:0.0.0.0:81"]);
    let counted = |name: &str, key: &str| -> u64 {
        let status: Value = host.holm(&["status", name, "--json"]).ok().json();
        status["traffic"][key].as_u64().unwrap_or_else(|| panic!("{key} in {status}"))
    };
    let connections = || {
        ["one", "two"].map(|name| {
            (counted(name, "opened_connections"), counted(name, "accepted_connections"))
        })
    };
    assert_eq!(connections(), [(0, 0), (0, 0)]);
    assert!(host.ask_from(true, "tcp", "192.0.2.10:80").starts_with("one"));
    assert!(host.ask_from(true, "tcp", "192.0.2.10:81").starts_with("two"));
    assert!(host.ask_from(true, "tcp", "192.0.2.10:81").starts_with("two"));
    assert_eq!(connections(), [(0, 1), (0, 2)]);
    let sent = counted("two", "sent_packets");
    assert!(host.ask("one", "tcp", "192.0.2.10:81").starts_with("two"));
    assert_eq!(connections(), [(1, 1), (0, 3)]);
    assert!(counted("two", "sent_packets") > sent, "what they send to each other counts");
    assert!(counted("two", "received_bytes") > 0);
    sandbox.holm(&["rm", "--force", "one", "two"]).ok();
}

fn an_address_is_shared_by_all(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.share("one", ONE, &["tcp:0.0.0.0:80"]);
    host.launch("alone", "192.0.2.10", &["sleep", "1000"])
        .refused(&["192.0.2.10 is another guest's", "net.share-address"]);
    // Its IPv6 addresses are a guest's own.
    host.create_sharing("three", "192.0.2.10,2001:db8::10", &[], &[]);
    host.holm(&["start", "three"]).refused(&["2001:db8::10", "another net.address"]);
    host.holm(&["kill", "one"]).ok();
    host.launch("alone", "192.0.2.10", &["sleep", "1000"]).ok();
    host.holm(&["start", "one"]).refused(&["192.0.2.10 is another guest's"]);
    host.holm(&["kill", "alone"]).ok();
    host.holm(&["start", "one"]).ok();
    // Another address takes effect at the next start, one of IPv6 at once.
    host.holm(&["set", "one", "net.address=192.0.2.11,2001:db8::10"]).ok().has("next start");
    host.holm(&["set", "one", "net.address=192.0.2.10,2001:db8::10,2001:db8::20"])
        .ok()
        .has("in effect now");
    let alone = ["net.share-address=false", "net.address=192.0.2.10,192.0.2.11,2001:db8::10"];
    let said = host.holm(&[&["set", "one"], &alone[..]].concat()).ok();
    assert!(!said.has("next start").stdout.contains("in effect now"), "{said}");
    assert!(host.ask_from(true, "tcp", "192.0.2.10:80").starts_with("one"));
    for (settings, why) in [
        (
            ["net.share-address=true", "net.address=192.0.2.10,192.0.2.11"],
            "exactly one IPv4 address",
        ),
        (["net.share-address=true", "net.address=2001:db8::10"], "one IPv4 address"),
    ] {
        let args = ["create", "four", "--base", "busybox", "--net", "native", "--set"];
        let settings = [settings[0], "--set", settings[1]];
        host.holm(&[&args[..], &settings].concat()).rejected(&["net.share-address", why]);
    }
    sandbox.holm(&["rm", "--force", "one", "alone", "three"]).ok();
}

/// Whichever of them it is: each end is also cut off once.
fn a_shared_address_stays_with_the_last_guest(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let shown = || host.topology.host.sh("ip -o addr show dev up0 to 192.0.2.40");
    let has_it = || shown().contains("192.0.2.40");
    host.create_sharing("one", "192.0.2.40", &["net.interface=up0"], &["tcp:0.0.0.0:80"]);
    host.create_sharing("two", "192.0.2.40", &[], &["tcp:0.0.0.0:81"]);
    host.create_sharing("three", "192.0.2.40", &[], &["tcp:0.0.0.0:82"]);
    host.holm(&["start", "two"]).refused(&["192.0.2.40", "net.interface"]);
    for step in ["", "native-handed-over"] {
        for name in ["one", "two", "three"] {
            host.holm(&["start", name]).ok();
        }
        for (name, left) in [("one", 2), ("three", 1), ("two", 0)] {
            if step.is_empty() {
                host.holm(&["kill", name]).ok();
            } else {
                // Without a monitor the command cleans up.
                let status = host.holm(&["status", name, "--json"]).ok().json();
                kill_hard(sandbox, process_of(&status, "monitor_pid"));
                host.kill_at(step, &["kill", name]);
                host.wait_for_end(name);
            }
            assert_eq!(has_it(), left > 0, "after {name}, cut off at {step:?}: {}", shown());
            let alone = host.launch("alone", "192.0.2.40", &["true"]);
            if left > 0 {
                alone.refused(&["192.0.2.40 is another guest's"]);
                host.wait_for_servers("two");
                let answer = "two asked by 192.0.2.1 at 192.0.2.40";
                assert_eq!(host.ask_from(true, "tcp", "192.0.2.40:81"), answer);
            } else {
                alone.refused(&["192.0.2.40", "net.interface"]);
            }
        }
    }
    // What the host had before stays with it.
    host.topology.host.sh("ip addr add 192.0.2.40/32 dev up0");
    host.holm(&["start", "one"]).ok();
    host.holm(&["start", "two"]).ok();
    host.holm(&["kill", "one", "two"]).ok();
    assert!(has_it(), "{}", shown());
    sandbox.holm(&["rm", "one", "two", "three"]).ok();
}
