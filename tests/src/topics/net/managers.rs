//! Guests that run a network manager: what Holm has set stays, and the responder offers the same.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::options::Lane;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

/// Why these run on the host only.
const SLOW: &str =
    "an emulated machine takes minutes for each systemd guest, and what differs is in the guest";

pub const TESTS: &[Test] = &[
    test!(networkd_keeps_the_configuration).bases(&["debian13"]).slow_in(&[Lane::Vm], SLOW),
    test!(networkd_can_ask_the_responder).bases(&["debian13"]).slow_in(&[Lane::Vm], SLOW),
    test!(ifupdown_keeps_the_configuration)
        .bases(&["debian13-ifupdown"])
        .slow_in(&[Lane::Vm], SLOW),
    test!(ifupdown_can_ask_the_responder).bases(&["debian13-ifupdown"]).slow_in(&[Lane::Vm], SLOW),
    test!(networkmanager_keeps_the_configuration)
        .bases(&["debian13-networkmanager"])
        .slow_in(&[Lane::Vm], SLOW),
    test!(networkmanager_can_ask_the_responder)
        .bases(&["debian13-networkmanager"])
        .slow_in(&[Lane::Vm], SLOW),
];

const SERVERS: [&str; 2] = ["192.0.2.53", "2001:db8::53"];

fn launch(sandbox: &Sandbox, base: &str) {
    let dns = format!("net.dns={}", SERVERS.join(","));
    sandbox.holm(&["launch", "g", "--base", base, "--set", &dns, "--wait"]).ok();
}

fn shell(sandbox: &Sandbox, script: &str) -> String {
    sandbox.holm(&["exec", "g", "--", "sh", "-c", script]).ok().stdout
}

/// The output of `shell`, as soon as `right` accepts it: the kernel and the manager need some time.
fn settles(sandbox: &Sandbox, script: &str, right: impl Fn(&str) -> bool) {
    sandbox.wait_for(script, || right(&shell(sandbox, script)).then_some(()));
}

/// The guest has the addresses of its run record and answers at them; then it ends.
fn is_as_decided(sandbox: &Sandbox) {
    let status: Value = sandbox.holm(&["status", "g", "--json"]).ok().json();
    let address = |at: usize| status["addresses"][at].as_str().expect("an address").to_owned();
    let (v4, v6) = (address(0), address(1));
    let is_one_line = |text: &str, part: &str| text.lines().count() == 1 && text.contains(part);
    settles(sandbox, "ip -4 -o address show dev eth0", |text| {
        is_one_line(text, &format!(" {v4}/32 "))
    });
    settles(sandbox, "ip -6 -o address show dev eth0 scope global -tentative", |text| {
        is_one_line(text, &format!(" {v6}/128 "))
    });
    settles(sandbox, "ip -4 route show default", |text| is_one_line(text, " via 169.254.1.1 "));
    settles(sandbox, "ip -6 route show default", |text| is_one_line(text, " via fe80::1 "));
    let resolver = shell(sandbox, "cat /etc/resolv.conf");
    for server in SERVERS {
        assert!(resolver.contains(&format!("nameserver {server}\n")), "{resolver}");
    }
    for address in [v4, v6] {
        let address: IpAddr = address.parse().expect("an address");
        sandbox.wait_for(&format!("{address} answers"), || answers(address).then_some(()));
    }
    sandbox.holm(&["rm", "--force", "g"]).ok();
}

/// Whether a system has the address: it refuses connections to a port without a server.
fn answers(address: IpAddr) -> bool {
    let port = SocketAddr::new(address, 9);
    TcpStream::connect_timeout(&port, Duration::from_secs(2))
        .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

const WAIT_ONLINE: &str =
    "/usr/lib/systemd/systemd-networkd-wait-online --interface=eth0 --timeout=20";

fn networkd_keeps_the_configuration(sandbox: &mut Sandbox) {
    launch(sandbox, "debian13");
    shell(sandbox, "systemctl enable systemd-networkd");
    sandbox.holm(&["restart", "--wait", "g"]).ok();
    shell(sandbox, WAIT_ONLINE);
    settles(sandbox, "networkctl status eth0", |text| {
        text.contains("(configured)") && text.contains("/run/systemd/network/10-holm.network")
    });
    is_as_decided(sandbox);
}

fn networkd_can_ask_the_responder(sandbox: &mut Sandbox) {
    launch(sandbox, "debian13");
    shell(
        sandbox,
        "printf '[Match]\nName=eth0\n[Network]\nDHCP=yes\nIPv6AcceptRA=yes\n' >/etc/systemd/network/10-holm.network
        systemctl enable systemd-networkd",
    );
    sandbox.holm(&["restart", "--wait", "g"]).ok();
    shell(sandbox, WAIT_ONLINE);
    settles(sandbox, "ip route show default", |text| text.contains("proto dhcp"));
    settles(sandbox, "ip -6 route show default", |text| text.contains("proto ra"));
    is_as_decided(sandbox);
}

fn ifupdown_keeps_the_configuration(sandbox: &mut Sandbox) {
    launch(sandbox, "debian13-ifupdown");
    shell(sandbox, "systemctl is-active networking");
    is_as_decided(sandbox);
}

/// By dhcpcd, which asks for all of it: DHCP, router solicitation, `DHCPv6`.
fn ifupdown_can_ask_the_responder(sandbox: &mut Sandbox) {
    launch(sandbox, "debian13-ifupdown");
    let script = "printf 'auto eth0\niface eth0 inet dhcp\n' >/etc/network/interfaces.d/eth0";
    shell(sandbox, script);
    sandbox.holm(&["restart", "--wait", "g"]).ok();
    shell(sandbox, "systemctl is-active networking");
    settles(sandbox, "ip route show default", |text| text.contains("proto dhcp"));
    settles(sandbox, "cat /etc/resolv.conf", |text| {
        SERVERS.iter().all(|server| text.contains(server))
    });
    is_as_decided(sandbox);
}

fn networkmanager_keeps_the_configuration(sandbox: &mut Sandbox) {
    launch(sandbox, "debian13-networkmanager");
    shell(sandbox, "nm-online -s -q -t 20");
    let state = shell(sandbox, "nmcli -g GENERAL.STATE device show eth0");
    assert!(state.contains("connected (externally)"), "{state}");
    is_as_decided(sandbox);
}

fn networkmanager_can_ask_the_responder(sandbox: &mut Sandbox) {
    launch(sandbox, "debian13-networkmanager");
    shell(sandbox, "nm-online -s -q -t 20 && nmcli connection up 'Wired connection 1'");
    settles(sandbox, "ip route show default", |text| text.contains("proto dhcp"));
    is_as_decided(sandbox);
}
