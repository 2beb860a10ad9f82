//! Sockets that another process has than the one that made them.

use std::fs::{Permissions, create_dir, set_permissions};
use std::os::unix::fs::PermissionsExt;

use super::{Host, ONE, TWO};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(sockets_are_passed_and_inherited).bases(&["busybox"]),
    test!(a_socket_stays_its_makers).bases(&["busybox"]),
];

/// Passes sockets from a process of the guest to the one that takes them at /share/socket.
fn hand_over(host: &Host<'_>, guest: &str, sockets: &[&str]) {
    let hand_over = ["exec", guest, "--", "/probe/holm-probe", "hand-over", "/share/socket"];
    host.holm(&[&hand_over[..], sockets].concat()).ok();
}

/// To another process of the guest, of which a new program inherits them (as from systemd).
fn sockets_are_passed_and_inherited(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let command = ["sh", "-c", "mkdir /share; exec /probe/holm-probe take /share/socket inheritor"];
    host.launch("one", ONE, &command).ok();
    host.wait_for_servers("one");
    hand_over(&host, "one", &["tcp:0.0.0.0:80", "udp:0.0.0.0:53", "tcp:[::]:81", "udp:[::]:54"]);
    for (protocol, to, client) in [
        ("tcp", "192.0.2.10:80", "192.0.2.1"),
        ("tcp", "192.0.2.11:80", "192.0.2.1"),
        ("tcp", "[2001:db8::10]:81", "2001:db8::1"),
        ("udp", "192.0.2.10:53", "192.0.2.1"),
        ("udp", "192.0.2.11:54", "192.0.2.1"),
        ("udp", "[2001:db8::10]:54", "2001:db8::1"),
    ] {
        let answer = host.ask_from(true, protocol, to);
        assert!(answer.starts_with(&format!("inheritor asked by {client}")), "{to}: {answer}");
    }
    sandbox.holm(&["rm", "--force", "one"]).ok();
}

/// Passed to another guest, it is still reached at the addresses of its own, and gives no others.
fn a_socket_stays_its_makers(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let share = sandbox.root().join("share");
    create_dir(&share).unwrap();
    set_permissions(&share, Permissions::from_mode(0o777)).unwrap();
    let mount = format!("mounts+={}:/share", share.display());
    let take = ["/probe/holm-probe", "take", "/share/socket", "two"];
    for (name, addresses, command) in [("one", ONE, &["sleep", "100000"][..]), ("two", TWO, &take)]
    {
        host.launch_with(&["--set", &mount], name, addresses, command).ok();
    }
    host.wait_for_servers("two");
    hand_over(&host, "one", &["tcp:0.0.0.0:80", "tcp:[::]:81", "udp:0.0.0.0:53"]);
    for (to, client) in [
        ("192.0.2.10:80", "192.0.2.1"),
        ("192.0.2.11:80", "192.0.2.1"),
        ("[2001:db8::10]:81", "2001:db8::1"),
    ] {
        let answer = host.ask_from(true, "tcp", to);
        assert!(answer.starts_with(&format!("two asked by {client}")), "{to}: {answer}");
    }
    for to in ["192.0.2.20:80", "[2001:db8::20]:81", "192.0.2.2:80"] {
        assert_eq!(host.ask_from(true, "tcp", to), "ConnectionRefused", "{to}");
    }
    // Its datagrams would be from an address that is not the other guest's.
    assert_eq!(host.ask_from(true, "udp", "192.0.2.10:53"), "WouldBlock");
    assert_eq!(host.ask_from(true, "udp-connected", "192.0.2.20:53"), "ConnectionRefused");
    host.holm(&["logs", "two"]).ok().has("no answer to 192.0.2.1: AddrNotAvailable");
    sandbox.holm(&["rm", "--force", "one", "two"]).ok();
}
