//! Guests with interfaces in networks of the host's: bridges and macvlans.

pub mod frames;

use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use holm::config::{Change, Net};
use holm::net;

use crate::guest::pid;
use crate::options::Lane;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use crate::topics::net::topology::{Guest, Host, PATIENCE, TestNetns, Topology};

pub const TESTS: &[Test] = &[
    test!(guests_are_machines_of_the_lan).bases(&["busybox"]),
    test!(a_guest_has_both_networks).bases(&["busybox"]),
    test!(guests_without_peers_are_apart_on_the_lan).bases(&["busybox"]),
    test!(restarts_keep_ethernet_addresses).bases(&["busybox"]),
    test!(a_start_that_is_killed_leaves_no_port).bases(&["busybox"]),
    test!(what_passes_a_port_is_counted).bases(&["busybox"]),
    test!(a_lan_that_cannot_be_is_told).bases(&["busybox"]),
    test!(networkd_asks_the_lan).bases(&["debian13"]).slow_in(
        &[Lane::Vm],
        "an emulated machine takes minutes for a systemd guest, and what differs is in the guest",
    ),
];

const HTTP: &[&str] = &["httpd", "-f", "-p", "80"];

impl Topology {
    /// A host whose uplink is a port of br0, which has its addresses.
    fn bridged() -> Self {
        let topology = Self::new();
        topology.host.sh(
            "ip link add br0 type bridge forward_delay 0; ip link set up0 address fc:00:00:00:00:01 master br0
             ip addr flush dev up0; ip addr add 192.0.2.2/24 dev br0; ip addr add 2001:db8::2/64 dev br0 nodad
             ip link set br0 up; ip -6 route flush default; ip route add default via 192.0.2.1
             ip route add default via 2001:db8::1",
        );
        topology.outside.sh("ip addr add 198.51.100.1/32 dev lo");
        topology
    }

    /// A guest without a private network, with an interface.
    fn lan_guest(&self, context: u32, lan: &[&str]) -> Guest {
        let settings = lan.iter().map(|item| format!("net.lan+={item}"));
        let changes: Vec<_> = ["base=b".to_owned(), "net.mode=none".to_owned()]
            .into_iter()
            .chain(settings)
            .map(|text| Change::parse(&text).unwrap())
            .collect();
        let net: Net = holm::config::from_changes(&changes).unwrap().net;
        let netns = TestNetns::new();
        let plan = self.host.with(|| {
            let mut plan = net::plan(1, context, &net).unwrap();
            plan.lan = net::plan_lan(&net, &format!("{context:032}")).unwrap();
            net::attach(&plan, netns.fd()).unwrap();
            plan
        });
        netns.configure(&plan);
        // Frames that come before the bridge has seen both ends up are lost.
        let shown = format!("bridge link show dev {}", plan.lan_port(0).unwrap());
        let end = Instant::now() + PATIENCE;
        while !self.host.sh(&shown).contains("state forwarding") {
            assert!(Instant::now() < end, "the port does not forward");
            thread::sleep(Duration::from_millis(10));
        }
        Guest { netns, plan }
    }
}

impl<'a> Host<'a> {
    fn bridged(sandbox: &'a Sandbox) -> Self {
        Self { topology: Topology::bridged(), sandbox }
    }
}

/// Whether something listens there, as seen from a network namespace; it may just be starting.
fn answers(from: &TestNetns, to: &str) -> bool {
    let to: SocketAddr = to.parse().unwrap();
    let end = Instant::now() + PATIENCE;
    from.with(|| {
        loop {
            match TcpStream::connect_timeout(&to, PATIENCE) {
                Ok(_) => return true,
                Err(_) if Instant::now() < end => thread::sleep(Duration::from_millis(10)),
                Err(_) => return false,
            }
        }
    })
}

fn guests_are_machines_of_the_lan(sandbox: &mut Sandbox) {
    let host = Host::bridged(sandbox);
    let outside = &host.topology.outside;
    let _servers =
        ["192.0.2.1:25", "[2001:db8::1]:25", "198.51.100.1:25"].map(|at| outside.tell_clients(at));
    let mount = format!("mounts+={}:/probe:ro", sandbox.probe_directory().display());
    let ethernet = || host.topology.host.sh("ip -o link show dev br0 | grep -o 'ether [^ ]*'");
    let before = ethernet();
    for (name, number) in [("one", 7), ("two", 8)] {
        let lan = format!("net.lan=bridge:br0@192.0.2.{number}/24@2001:db8::{number}/64");
        host.run(name, &["net.mode=none", &lan, "net.gateway=192.0.2.1", &mount], HTTP).ok();
    }
    assert_eq!(ethernet(), before, "the bridge takes no guest's");
    let asks = |server: &str| {
        let ask = ["exec", "one", "--", "/probe/holm-probe", "ask", "tcp", server];
        let client = host.holm(&ask).ok().stdout;
        client.trim().parse::<SocketAddr>().unwrap().ip().to_string()
    };
    assert_eq!(asks("192.0.2.1:25"), "192.0.2.7", "no address is translated");
    assert_eq!(asks("[2001:db8::1]:25"), "2001:db8::7");
    assert_eq!(asks("198.51.100.1:25"), "192.0.2.7", "by net.gateway");
    for from in [outside, &host.topology.host] {
        for to in ["192.0.2.7:80", "[2001:db8::7]:80", "192.0.2.8:80", "[2001:db8::8]:80"] {
            assert!(answers(from, to), "{to}");
        }
    }
    let page = ["exec", "two", "--", "sh", "-c", "echo page of two >/index.html"];
    host.holm(&page).ok();
    let got = host.holm(&["exec", "one", "--", "wget", "-q", "-O-", "http://192.0.2.8/"]).ok();
    assert_eq!(got.stdout, "page of two\n", "the other guest");
    for name in ["one", "two"] {
        host.holm(&["rm", "-f", name]).ok();
    }
    sandbox.wait_for("ports disappear", || {
        (!host.topology.host.sh("ip -o link").contains("lan")).then_some(())
    });
}

fn a_guest_has_both_networks(sandbox: &mut Sandbox) {
    let host = Host::bridged(sandbox);
    let outside = &host.topology.outside;
    let _servers = outside.tell_clients("198.51.100.1:25");
    let mount = format!("mounts+={}:/probe:ro", sandbox.probe_directory().display());
    let lan = "net.lan=bridge:br0@192.0.2.7/24,macvlan:up1@203.0.113.7/24,bridge:br0";
    host.topology.host.sh("ip link add up1 type veth peer name far; ip link set up1 up; ip link set far up; ip addr add 203.0.113.1/24 dev far");
    host.run("web", &[lan, "net.publish=8080:80", &mount], HTTP).ok();
    let inside = host.holm(&["exec", "web", "--", "ip", "-o", "-4", "addr"]).ok().stdout;
    for part in ["eth0    inet 10.", "eth1    inet 192.0.2.7/24", "eth2    inet 203.0.113.7/24"] {
        assert!(inside.contains(part), "{inside}");
    }
    // Neither addresses that it could not send from, nor another default route, by IPv6.
    for file in ["eth1/accept_ra", "eth2/accept_ra", "eth3/accept_ra_defrtr"] {
        let path = format!("/proc/sys/net/ipv6/conf/{file}");
        assert_eq!(host.holm(&["exec", "web", "--", "cat", &path]).ok().stdout, "0\n", "{file}");
    }
    let ask = ["exec", "web", "--", "/probe/holm-probe", "ask", "tcp", "198.51.100.1:25"];
    let client = host.holm(&ask).ok().stdout;
    assert!(client.starts_with("192.0.2.2:"), "the default route is the private one: {client}");
    assert!(answers(outside, "192.0.2.7:80"), "by the bridge");
    assert!(answers(&host.topology.host, "203.0.113.7:80"), "by the macvlan");
    assert!(answers(&host.topology.host, "127.0.0.1:8080"), "by the published port");
    host.holm(&["rm", "-f", "web"]).ok();
}

fn guests_without_peers_are_apart_on_the_lan(sandbox: &mut Sandbox) {
    let host = Host::bridged(sandbox);
    let outside = &host.topology.outside;
    host.topology.host.sh(&format!(
        "ip link add up1 type veth peer name far netns {}
         ip addr add 203.0.113.9/24 dev up1; ip link set up1 up",
        outside.pid()
    ));
    outside.sh("ip addr add 203.0.113.1/24 dev far; ip link set far up");
    for (name, number) in [("one", 7), ("two", 8)] {
        let lan =
            format!("net.lan=bridge:br0@192.0.2.{number}/24,macvlan:up1@203.0.113.{number}/24");
        host.run(name, &["net.mode=none", &lan, "net.peers=false"], HTTP).ok();
    }
    for at in ["192.0.2.7:80", "192.0.2.8:80", "203.0.113.7:80", "203.0.113.8:80"] {
        assert!(answers(outside, at), "{at}");
    }
    // The last is the host's own, below the macvlan.
    for at in ["192.0.2.8", "203.0.113.8", "203.0.113.9"] {
        let asked = format!("http://{at}/");
        let ask = ["exec", "one", "--", "timeout", "2", "wget", "-q", "-O-", &asked];
        let asked = host.holm(&ask);
        let answered = ["404", "refused"].iter().any(|said| asked.stderr.contains(said));
        assert!(asked.code() != 0 && !answered, "{at} answered: {asked}");
    }
    for name in ["one", "two"] {
        host.holm(&["rm", "-f", name]).ok();
    }
}

fn restarts_keep_ethernet_addresses(sandbox: &mut Sandbox) {
    let host = Host::bridged(sandbox);
    host.topology.host.sh("ip link add up1 type veth peer name far; ip link set up1 up");
    host.run("web", &["net.mode=none", "net.lan=bridge:br0,macvlan:up1"], HTTP).ok();
    let show =
        ["exec", "web", "--", "cat", "/sys/class/net/eth0/address", "/sys/class/net/eth1/address"];
    let before = host.holm(&show).ok().stdout;
    assert_eq!(before.lines().count(), 2, "{before}");
    let told: Vec<_> = {
        let lan = status_on(&host, "web")["lan"].clone();
        let addresses = lan.as_array().unwrap().iter().map(|it| it["ethernet_address"].clone());
        addresses.map(|it| it.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(before.lines().collect::<Vec<_>>(), told);
    host.holm(&["restart", "web"]).ok();
    assert_eq!(host.holm(&show).ok().stdout, before);
    // The interfaces of the run before are there as long as its network namespace.
    let init = pid(&status_on(&host, "web"), "init_pid");
    let held = File::open(format!("/proc/{init}/ns/net")).unwrap();
    thread::scope(|scope| {
        let restart = scope.spawn(|| host.holm(&["restart", "web"]));
        // It may not have come so far by then, and then has nothing to wait for.
        thread::sleep(Duration::from_secs(1));
        drop(held);
        restart.join().unwrap().ok();
    });
    assert_eq!(host.holm(&show).ok().stdout, before);
    // Another guest has others.
    host.run("other", &["net.mode=none", "net.lan=bridge:br0,macvlan:up1"], HTTP).ok();
    let others = [
        "exec",
        "other",
        "--",
        "cat",
        "/sys/class/net/eth0/address",
        "/sys/class/net/eth1/address",
    ];
    let others = host.holm(&others).ok().stdout;
    assert!(others.lines().all(|address| !before.contains(address)), "{before}{others}");
    for name in ["web", "other"] {
        host.holm(&["rm", "-f", name]).ok();
    }
}

fn a_start_that_is_killed_leaves_no_port(sandbox: &mut Sandbox) {
    let host = Host::bridged(sandbox);
    let lan = ["create", "box", "--base", "busybox", "--set", "net.lan=bridge:br0@192.0.2.7/24"];
    host.holm(&[&lan[..], &["--", "httpd", "-f", "-p", "80"]].concat()).ok();
    for step in ["lan-pair", "lan-guard", "net-attach"] {
        host.topology.kill_at(sandbox, step, &["start", "box"]);
        sandbox.wait_for(&format!("ports disappear after {step}"), || {
            host.holm(&["ls"]).ok();
            (!host.topology.host.sh("ip -o link").contains("lan")).then_some(())
        });
        host.holm(&["start", "box"]).ok();
        assert!(answers(&host.topology.outside, "192.0.2.7:80"), "after {step}");
        host.holm(&["stop", "box"]).ok();
    }
    host.holm(&["rm", "box"]).ok();
}

fn what_passes_a_port_is_counted(sandbox: &mut Sandbox) {
    let host = Host::bridged(sandbox);
    let lan = "net.lan=bridge:br0@192.0.2.7/24@2001:db8::7/64";
    host.run("web", &["net.mode=none", lan], HTTP).ok();
    assert!(answers(&host.topology.outside, "192.0.2.7:80"));
    let take = ["exec", "web", "--", "ip", "addr", "add", "192.0.2.1/24", "dev", "eth0"];
    host.holm(&take).ok();
    let claim = ["exec", "web", "--", "arping", "-c", "2", "-U", "-I", "eth0", "192.0.2.1"];
    host.holm(&claim);
    let shown = status_on(&host, "web");
    let port = &shown["lan"][0];
    for (key, value) in [
        ("interface", "eth0"),
        ("kind", "bridge"),
        ("parent", "br0"),
        ("host_interface", &format!("lan{}-1-0", sandbox.instance().unwrap())),
    ] {
        assert_eq!(port[key], value, "{port}");
    }
    assert_eq!(port["addresses"], serde_json::json!(["192.0.2.7/24", "2001:db8::7/64"]));
    assert_eq!(shown["addresses"], serde_json::json!(["192.0.2.7", "2001:db8::7"]));
    for key in ["sent_packets", "sent_bytes", "received_packets", "received_bytes"] {
        assert!(port["traffic"][key].as_u64().unwrap() > 0, "{key}: {port}");
    }
    let had = host.holm(&["flows", "--address", "192.0.2.7", "--json"]).ok().json();
    assert_eq!((&had[0]["name"], &had[0]["kind"]), (&"web".into(), &"address".into()), "{had}");
    assert!(port["traffic"]["dropped_packets"].as_u64().unwrap() >= 2, "{port}");
    let text = host.holm(&["status", "web"]).ok().stdout;
    for part in ["eth0 on bridge:br0@192.0.2.7/24@2001:db8::7/64, ", "dropped that it may not send"]
    {
        assert!(text.contains(part), "{text}");
    }
    host.holm(&["rm", "-f", "web"]).ok();
}

fn status_on(host: &Host<'_>, name: &str) -> serde_json::Value {
    host.holm(&["status", name, "--json"]).ok().json()
}

fn a_lan_that_cannot_be_is_told(sandbox: &mut Sandbox) {
    let host = Host::bridged(sandbox);
    for (lan, told) in [
        ("bridge:br7", "net.lan: br7: this host has no such interface"),
        ("bridge:up0", "net.lan: up0: it is not a bridge"),
        ("macvlan:up0", "net.lan: up0: it is a port of a bridge or bond"),
        ("macvlan:lo", "net.lan: lo: it is not an Ethernet interface"),
    ] {
        let refused = host.run("web", &[&format!("net.lan={lan}")], HTTP);
        refused.refused(&[told]);
        host.holm(&["rm", "-f", "web"]);
    }
    for (settings, told) in [
        (&["net.mode=host", "net.lan=bridge:br0"][..], "net.lan is for guests that have their own"),
        (&["net.lan=bridge:br0", "net.deny=out:tcp:25"], "net.deny conflicts with net.lan"),
        (&["net.mode=none", "net.gateway=192.0.2.1"], "no address in net.lan reaches 192.0.2.1"),
        (&["net.lan=bridge:br0@192.0.2.7"], "is not an address with the length of its prefix"),
    ] {
        let refused = host.run("web", settings, HTTP);
        refused.rejected(&[told]);
    }
    assert!(!host.topology.host.sh("ip -o link").contains("lan"));
}

fn networkd_asks_the_lan(sandbox: &mut Sandbox) {
    let host = Host::bridged(sandbox);
    let outside = &host.topology.outside;
    let directory = sandbox.beside("dhcp");
    std::fs::create_dir_all(&directory).unwrap();
    let configuration = directory.join("udhcpd.conf");
    let at = directory.display();
    std::fs::write(
        &configuration,
        format!("start 192.0.2.100\nend 192.0.2.100\ninterface eth0\nmax_leases 1\nlease_file {at}/leases\npidfile {at}/pid\noption subnet 255.255.255.0\noption router 192.0.2.1\n"),
    )
    .unwrap();
    std::fs::write(directory.join("leases"), "").unwrap();
    let mut server = outside.with(|| {
        std::process::Command::new("busybox")
            .args(["udhcpd", "-f", &configuration.to_string_lossy()])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap()
    });
    let launch = [
        "launch",
        "g",
        "--base",
        "debian13",
        "--net",
        "none",
        "--set",
        "net.lan=bridge:br0",
        "--wait",
    ];
    host.holm(&launch).ok();
    host.holm(&["exec", "g", "--", "systemctl", "start", "systemd-networkd"]).ok();
    sandbox.wait_for("a lease", || {
        let shown =
            host.holm(&["exec", "g", "--", "ip", "-o", "-4", "addr", "show", "dev", "eth0"]);
        shown.stdout.contains("192.0.2.100/24").then_some(())
    });
    let route = host.holm(&["exec", "g", "--", "ip", "route", "show", "default"]).ok().stdout;
    assert!(route.contains("via 192.0.2.1 dev eth0"), "{route}");
    assert!(answers(outside, "192.0.2.100:22"), "its ssh");
    networkd_keeps_what_is_set(&host);
    host.holm(&["rm", "-f", "g"]).ok();
    server.kill().unwrap();
    server.wait().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
}

fn networkd_keeps_what_is_set(host: &Host<'_>) {
    let settings =
        ["net.lan=bridge:br0@192.0.2.7/24@2001:db8::7/64", "net.gateway=192.0.2.1,2001:db8::1"];
    host.holm(&["exec", "g", "--", "systemctl", "enable", "systemd-networkd"]).ok();
    host.holm(&[&["set", "g"][..], &settings].concat()).ok();
    host.holm(&["restart", "--wait", "g"]).ok();
    let mut shown = String::new();
    let is_configured = host.sandbox.poll_until_limit(|| {
        shown = host.holm(&["exec", "g", "--", "networkctl", "status", "eth0"]).stdout;
        (shown.contains("routable") && shown.contains("configured")).then_some(())
    });
    assert!(is_configured.is_some(), "networkd has not configured eth0: {shown}");
    let shell =
        "ip -o addr show dev eth0 scope global; ip route show default; ip -6 route show default";
    let shown = host.holm(&["exec", "g", "--", "sh", "-c", shell]).ok().stdout;
    for part in
        [" 192.0.2.7/24 ", " 2001:db8::7/64 ", "via 192.0.2.1 dev eth0", "via 2001:db8::1 dev eth0"]
    {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    assert!(!shown.contains("192.0.2.100"), "{shown}");
    assert_eq!(shown.matches("scope global").count(), 2, "{shown}");
}
