//! Guests that make as many sockets as they get, each with a port of those that the kernel chooses
//! from.

use super::{Host, ONE, TWO};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(ports_are_not_all_one_guests).bases(&["busybox"]),
    test!(ports_are_not_all_the_guests).bases(&["busybox"]),
];

/// Starts a guest that takes ports at its first address, and waits for it.
fn launch(host: &Host<'_>, name: &str, addresses: &str, expected: usize) {
    let own = addresses.split(',').next().unwrap();
    host.launch(name, addresses, &["/probe/holm-probe", "take-ports", own]).ok();
    let log = host.sandbox.wait_for("the ports", || {
        let log = host.holm(&["logs", name]).ok().stdout;
        (log.contains("took") || log.contains("HOLE")).then_some(log)
    });
    let has_taken = log.lines().any(|line| line == format!("took {expected}"));
    assert!(has_taken && !log.contains("HOLE"), "{log}");
}

/// A port that one has, the kernel gives to nobody who asks for any.
fn ports_are_not_all_one_guests(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let _server = host.topology.outside.serve_tcp("192.0.2.1:7004");
    host.topology.host.sh("sysctl -qw net.ipv4.ip_local_port_range='40000 50000'");
    launch(&host, "greedy", "192.0.2.10", 8192);
    host.serve("two", TWO);
    for _ in 0..20 {
        assert_eq!(host.ask("two", "tcp", "192.0.2.1:7004"), "192.0.2.20");
        assert_eq!(host.ask_from(false, "tcp", "192.0.2.1:7004"), "192.0.2.2");
    }
    for protocol in ["udp", "udp-connected"] {
        assert!(host.ask_from(false, protocol, "192.0.2.20:53").starts_with("two asked by"));
        assert_eq!(host.ask("two", protocol, "192.0.2.20:53"), "two asked by 192.0.2.20");
    }
    host.holm(&["rm", "--force", "greedy", "two"]).ok();
}

/// Of the usual range, some are left to the host when no guest gets another socket.
fn ports_are_not_all_the_guests(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let _server = host.topology.outside.serve_tcp("192.0.2.1:7004");
    host.topology.host.sh("sysctl -qw net.ipv4.ip_local_port_range='32768 60999'");
    launch(&host, "one", ONE, 8192);
    launch(&host, "two", TWO, 8192);
    // The others have closed one again.
    launch(&host, "three", "192.0.2.30", 20480 - 2 * 8191);
    for _ in 0..20 {
        assert_eq!(host.ask_from(false, "tcp", "192.0.2.1:7004"), "192.0.2.2");
    }
    // Those of guests that have ended are free again.
    host.holm(&["rm", "--force", "one", "three"]).ok();
    launch(&host, "four", "192.0.2.30", 8192);
    host.holm(&["rm", "--force", "two", "four"]).ok();
}
