//! By which ways packets reach native guests, and what they send by one call.

use super::{Host, ONE, TWO, refused};
use crate::command::Running;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use crate::topics::net::topology::{PATIENCE, SILENCE};

pub const TESTS: &[Test] = &[
    test!(any_interface_leads_to_the_guest).bases(&["busybox"]),
    test!(a_socket_at_the_address_comes_before_any).bases(&["busybox"]),
    test!(a_server_that_starts_later_is_reached).bases(&["busybox"]),
    test!(a_message_of_many_datagrams).bases(&["busybox"]),
    test!(private_guests_reach_native_ones).bases(&["busybox"]),
    test!(classifiers_of_others_stay).bases(&["busybox"]),
    test!(datagrams_arrive_where_connections_are_translated).bases(&["busybox"]),
];

/// A second way from the outside to the addresses of the host's first.
const SIDE: &str = "ip link add side0 type veth peer name side1 netns PID
ip addr add 198.51.100.2/24 dev side0; ip addr add 2001:db8:1::2/64 dev side0 nodad
ip link set side0 up
for at in all default side0 up0; do echo 0 > /proc/sys/net/ipv4/conf/$at/rp_filter; done";
const OUTSIDE: &str = "ip addr add 198.51.100.1/24 dev side1
ip addr add 2001:db8:1::1/64 dev side1 nodad; ip link set side1 up
ip route add 192.0.2.10/31 via 198.51.100.2; ip route add 2001:db8::10/128 via 2001:db8:1::2";

fn any_interface_leads_to_the_guest(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let (inside, outside) = (&host.topology.host, &host.topology.outside);
    inside.sh(&SIDE.replace("PID", &outside.pid().to_string()));
    outside.sh(OUTSIDE);
    host.serve("one", ONE);
    // Bound to any address, for IPv4 alone and for both; the second address is what is steered.
    for (to, from) in [
        ("192.0.2.10:53", "198.51.100.1"),
        ("192.0.2.11:53", "198.51.100.1"),
        ("192.0.2.11:54", "198.51.100.1"),
        ("[2001:db8::10]:54", "2001:db8:1::1"),
    ] {
        assert_eq!(host.ask_from(true, "udp", to), format!("one asked by {from}"), "{to}");
    }
    let _servers = ["0.0.0.0:7002", "[::]:7003"].map(|at| inside.serve_udp(at));
    let asked = |to: &str, patience| outside.ask_udp(to, patience).is_some();
    assert!(asked("198.51.100.2:7002", PATIENCE) && asked("[2001:db8:1::2]:7003", PATIENCE));
    for to in ["192.0.2.11:7002", "192.0.2.11:7003", "[2001:db8::10]:7003"] {
        assert!(!asked(to, SILENCE), "the host answers at {to}");
        assert!(outside.with(|| refused(to)), "{to} refuses nothing");
    }
    sandbox.holm(&["rm", "--force", "one"]).ok();
}

/// Starts a server in the guest that is bound to an address.
fn serve_exactly(host: &Host<'_>, at: &str) -> Running {
    let mut command = host.sandbox.command();
    command.args(["exec", "one", "--", "/probe/holm-probe", "serve-at", "exact"]);
    command.arg(format!("udp:{at}"));
    host.topology.host.with(|| Running::new(&mut command, b""))
}

/// Also when the other one was asked before.
fn a_socket_at_the_address_comes_before_any(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.serve("one", ONE);
    let ask = |to: &str| host.ask_from(true, "udp", to);
    let mut servers = Vec::new();
    for at in ["192.0.2.11:53", "[2001:db8::10]:54"] {
        assert!(ask(at).starts_with("one asked"), "{at}");
        let server = serve_exactly(&host, at);
        sandbox.wait_for("the other server", || ask(at).starts_with("exact asked").then_some(()));
        assert!(ask("192.0.2.10:53").starts_with("one asked"), "{at}");
        servers.push(server);
    }
    host.holm(&["rm", "--force", "one"]).ok();
    for server in servers {
        server.finish(sandbox.limit());
    }
}

/// What was nobody's when it was asked is the guest's as soon as it has a socket there.
fn a_server_that_starts_later_is_reached(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.launch("one", ONE, &["sleep", "100000"]).ok();
    let mut servers = Vec::new();
    for (at, asked) in [
        ("0.0.0.0:55", &["192.0.2.10:55", "192.0.2.11:55"][..]),
        ("192.0.2.11:56", &["192.0.2.11:56"]),
        ("[::]:57", &["[2001:db8::10]:57", "192.0.2.10:57"]),
        ("[2001:db8::10]:58", &["[2001:db8::10]:58"]),
    ] {
        for to in asked {
            assert!(host.topology.outside.with(|| refused(to)), "{to} refuses nothing");
        }
        servers.push(serve_exactly(&host, at));
        for to in asked {
            let ask = || host.ask_from(true, "udp", to).starts_with("exact asked");
            sandbox.wait_for("the server", || ask().then_some(()));
        }
    }
    host.holm(&["rm", "--force", "one"]).ok();
    for server in servers {
        server.finish(sandbox.limit());
    }
}

const TCP: [&str; 3] = ["192.0.2.10:80", "192.0.2.11:81", "[2001:db8::10]:81"];
const UDP: [(&str, &str); 5] = [
    ("udp", "192.0.2.10:53"),
    ("udp-connected", "192.0.2.10:54"),
    ("udp", "192.0.2.11:53"),
    ("udp-connected", "192.0.2.11:54"),
    ("udp", "[2001:db8::10]:54"),
];

/// Looks whether a private guest reaches the native one.
fn reaches(host: &Host<'_>, name: &str) {
    for (protocol, to) in TCP.map(|to| ("tcp", to)).into_iter().chain(UDP) {
        let answer = host.ask(name, protocol, to);
        let from = if to.starts_with('[') { "fd00:686f:6c6d:" } else { "10." };
        assert!(answer.starts_with(&format!("one asked by {from}")), "{name} {to}: {answer}");
    }
}

/// Looks whether it reaches nothing of the host, which has servers at port 7005.
fn does_not_reach_the_host(host: &Host<'_>, name: &str) {
    // Where the guest has nothing: by TCP nobody's, and by UDP not let through.
    for at in ["192.0.2.10:7005", "192.0.2.11:7005", "192.0.2.2:7005"] {
        assert_eq!(host.ask(name, "tcp", at), "ConnectionRefused", "{name} {at}");
        // The kernel sends one refusal each second.
        let answer = host.ask(name, "udp-connected", at);
        assert!(["ConnectionRefused", "WouldBlock"].contains(&answer.as_str()), "{name} {at}");
    }
}

fn serves_again(host: &Host<'_>, client: &str) {
    host.sandbox.wait_for("the servers", || {
        host.ask(client, "tcp", TCP[0]).starts_with("one asked").then_some(())
    });
}

/// The interfaces with classifiers.
pub(super) fn classifiers(host: &Host<'_>) -> Vec<String> {
    let all = host.topology.host.sh("tc qdisc show");
    let mine = all.lines().filter(|line| line.starts_with("qdisc clsact"));
    mine.filter_map(|line| Some(line.split(" dev ").nth(1)?.split(' ').next()?.to_owned()))
        .collect()
}

pub(super) fn look_at_filters(host: &Host<'_>, interface: &str) -> String {
    host.topology.host.sh(&format!("tc filter show dev {interface} ingress"))
}

/// What another program does at the interface of a private guest stays, and datagrams that come by
/// it are not steered.
fn classifiers_of_others_stay(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let mount = format!("{}:/probe:ro", host.probe.display());
    host.holm(&["launch", "private", "--base", "busybox", "-v", &mount, "--", "sleep", "100000"])
        .ok();
    host.serve("one", ONE);
    let [interface] = &classifiers(&host)[..] else { panic!("{:?}", classifiers(&host)) };
    host.holm(&["kill", "one"]).ok();
    let tc = |command: &str| host.topology.host.sh(&format!("tc {command}"));
    let add = |priority| {
        let matches = "protocol all u32 match u32 0 0 flowid 1:1";
        tc(&format!("filter add dev {interface} ingress pref {priority} {matches}"));
        look_at_filters(&host, interface)
    };
    tc(&format!("qdisc add dev {interface} clsact"));
    let before = add(5);
    host.holm(&["start", "one"]).ok();
    serves_again(&host, "private");
    assert_eq!(look_at_filters(&host, interface), before);
    assert!(host.ask("private", "udp", "192.0.2.10:53").starts_with("one asked by 10."));
    assert!(!host.ask("private", "udp", "192.0.2.11:53").contains("asked"));
    // Where Holm's own would be.
    let before = add(1);
    host.holm(&["kill", "one"]).ok();
    assert_eq!(look_at_filters(&host, interface), before);
    host.holm(&["rm", "--force", "one", "private"]).ok();
}

/// At the host's addresses, where they reach none of the host's services.
fn private_guests_reach_native_ones(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let _servers = [host.topology.host.serve_tcp("0.0.0.0:7005")];
    let _udp = host.topology.host.serve_udp("0.0.0.0:7005");
    let mount = format!("{}:/probe:ro", host.probe.display());
    let private = |name: &str, more: &[&str]| {
        let head = ["launch", name, "--base", "busybox", "-v", &mount];
        host.holm(&[&head[..], more, &["--", "sleep", "100000"]].concat()).ok();
    };
    // One that is there before, and one that comes after; the rule is added by either.
    private("before", &[]);
    host.serve("one", ONE);
    reaches(&host, "before");
    does_not_reach_the_host(&host, "before");
    private("after", &[]);
    reaches(&host, "after");
    // At another address than the first, what is bound to that very address.
    let at = "192.0.2.11:55";
    let server = serve_exactly(&host, at);
    let is_answered = || host.ask("after", "udp", at).starts_with("exact asked by 10.");
    sandbox.wait_for("the other server", || is_answered().then_some(()));
    private("alone", &["--set", "net.peers=false"]);
    for to in TCP {
        assert_eq!(host.ask("alone", "tcp", to), "ConnectionRefused", "{to}");
    }
    assert!(!host.ask("alone", "udp", "192.0.2.11:53").contains("asked"));
    // When another program has removed the rules, they are made again whole.
    let table = format!("inet holm-{}", sandbox.instance().expect("an instance"));
    host.topology.host.sh(&format!("nft delete table {table}"));
    host.holm(&["ls"]).ok();
    reaches(&host, "before");
    // A native guest is known while it runs.
    let known = || host.topology.host.sh(&format!("nft list set {table} native_guests"));
    let with = known();
    assert_eq!(classifiers(&host).len(), 3);
    host.holm(&["kill", "one"]).ok();
    server.finish(sandbox.limit());
    assert!(known().len() < with.len(), "{with}");
    assert_eq!(classifiers(&host), Vec::<String>::new());
    host.holm(&["start", "one"]).ok();
    assert_eq!(known().len(), with.len());
    serves_again(&host, "before");
    reaches(&host, "before");
    // The first private guest makes the rules, when a native one runs already.
    host.holm(&["kill", "one", "before", "after", "alone"]).ok();
    host.topology.host.sh(&format!("nft delete table {table}"));
    host.holm(&["start", "one"]).ok();
    host.holm(&["start", "after"]).ok();
    serves_again(&host, "after");
    reaches(&host, "after");
    host.holm(&["rm", "--force", "one", "before", "after", "alone"]).ok();
}

/// Beside a private guest, where the kernel forgets the socket of a datagram that it tracks. At the
/// first addresses, at others, and of servers for IPv4 alone and for both.
fn datagrams_arrive_where_connections_are_translated(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.serve("one", "192.0.2.10,192.0.2.11,2001:db8::10,2001:db8::20");
    host.launch("two", "192.0.2.20", &["sleep", "100000"]).ok();
    host.holm(&["launch", "private", "--base", "busybox", "--", "sleep", "100000"]).ok();
    let all = ["192.0.2.10:53", "192.0.2.11:53", "192.0.2.11:54", "[2001:db8::10]:54"];
    for to in all.into_iter().chain(["[2001:db8::20]:54"]) {
        for protocol in ["udp", "udp-connected"] {
            for outside in [true, false] {
                let answer = host.ask_from(outside, protocol, to);
                assert!(answer.starts_with("one asked by"), "{outside} {protocol} {to}: {answer}");
            }
            for name in if to.starts_with('[') { &["one"][..] } else { &["one", "two"] } {
                let answer = host.ask(name, protocol, to);
                assert!(answer.starts_with("one asked by"), "{name} {protocol} {to}: {answer}");
            }
        }
    }
    // A server of later, where its first address was nobody's before.
    assert!(host.topology.host.with(|| refused("192.0.2.10:55")), "its first address");
    let server = serve_exactly(&host, "0.0.0.0:55");
    let ask = || host.ask_from(false, "udp", "192.0.2.11:55").starts_with("exact asked");
    sandbox.wait_for("the other server", || ask().then_some(()));
    answers_are_no_connections_of_the_guest(&host);
    // When another program has removed the rules, they are made again.
    let table = format!("inet holm-{}-native", sandbox.instance().expect("an instance"));
    host.topology.host.sh(&format!("nft delete table {table}"));
    host.holm(&["ls"]).ok();
    assert!(host.ask_from(true, "udp", "192.0.2.11:53").starts_with("one asked by"));
    host.holm(&["rm", "--force", "one", "two", "private"]).ok();
    server.finish(sandbox.limit());
}

fn answers_are_no_connections_of_the_guest(host: &Host<'_>) {
    let _servers = ["192.0.2.1:7011", "[2001:db8::1]:7011"]
        .map(|address| host.topology.outside.serve_udp(address));
    let serves = |to: &str| {
        let answer = host.ask_from(true, "udp", to);
        assert!(answer.starts_with("one asked by"), "{to}: {answer}");
    };
    host.holm(&["set", "one", "net.deny=out:udp"]).ok();
    for to in ["192.0.2.11:53", "[2001:db8::10]:54"] {
        serves(to);
    }
    for to in ["192.0.2.1:7011", "[2001:db8::1]:7011"] {
        assert_eq!(host.ask("one", "udp", to), "PermissionDenied", "{to}");
    }
    // Nor are answers to the guest connections of others.
    host.holm(&["set", "one", "net.deny=in:udp"]).ok();
    for (to, from) in [("192.0.2.1:7011", "192.0.2.10"), ("[2001:db8::1]:7011", "2001:db8::10")] {
        assert_eq!(host.ask("one", "udp-from-7010", to), from);
    }
    assert!(!host.ask_from(true, "udp", "192.0.2.11:53").contains("asked"));
    host.holm(&["set", "one", "net.deny="]).ok();
}

/// sendmmsg(2): each of the datagrams of a call has its own destination, which is looked at.
fn a_message_of_many_datagrams(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.launch("one", ONE, &["sleep", "100000"]).ok();
    host.launch("two", TWO, &["sleep", "100000"]).ok();
    for to in [
        &["192.0.2.10", "127.0.0.1", "192.0.2.20", "127.9.9.9:7004"][..],
        &["2001:db8::10", "::1", "2001:db8::20"],
    ] {
        let probe = ["exec", "one", "--", "/probe/holm-probe", "sendmmsg"];
        host.holm(&[&probe[..], to].concat()).ok();
    }
    sandbox.holm(&["rm", "--force", "one", "two"]).ok();
}
