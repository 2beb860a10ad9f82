//! Connections that `net.deny` refuses, and its exceptions in `net.allow`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::topology::{Host, PATIENCE, SILENCE, TestNetns};
use crate::command::Outcome;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(what_a_private_guest_opens_is_refused).bases(&["busybox"]),
    test!(what_a_native_guest_opens_is_refused).bases(&["busybox"]),
    test!(guests_that_share_an_address_have_rules_of_their_own).bases(&["busybox"]),
    test!(what_others_open_to_a_private_guest_is_dropped).bases(&["busybox"]),
    test!(what_others_open_to_a_native_guest_is_dropped).bases(&["busybox"]),
    test!(dhcp_is_not_refused).bases(&["busybox"]),
    test!(an_open_connection_is_refused_too).bases(&["busybox"]),
    test!(rules_stay_with_the_addresses_of_a_native_guest).bases(&["busybox"]),
    test!(flushed_access_rules_are_restored).bases(&["busybox"]),
    test!(nothing_of_access_rules_stays).bases(&["busybox"]),
    test!(a_killed_change_of_access_rules_is_repaired).bases(&["busybox"]),
    test!(access_rules_that_cannot_be_are_told).bases(&["busybox"]),
];

const PRIVATE: &[&str] = &["net.publish=8080:80"];
const NATIVE: &[&str] =
    &["net.mode=native", "net.address=192.0.2.10,2001:db8::10", "net.interface=up0"];

impl Host<'_> {
    /// Starts a guest with a web server.
    fn serve(&self, name: &str, settings: &[&str]) {
        self.run(name, settings, &["httpd", "-f", "-p", "80", "-h", "/etc"]).ok();
    }

    /// Whether the guest can connect by TCP.
    fn connects(&self, name: &str, to: &str, port: u16) -> bool {
        let to = ["exec", name, "--", "nc", "-w", "2", to, &port.to_string()];
        self.holm(&to).code() == 0
    }

    fn pings(&self, name: &str, to: &str) -> bool {
        self.holm(&["exec", name, "--", "ping", "-c", "1", "-W", "1", to]).code() == 0
    }

    fn set(&self, name: &str, setting: &str) -> Outcome {
        self.holm(&["set", name, setting])
    }

    /// What an item has matched in this run.
    fn matched(&self, name: &str, rule: &str) -> u64 {
        let status = self.holm(&["status", name, "--json"]).ok().json();
        let all = status["access"].as_array().unwrap();
        let found = all.iter().find(|it| it["rule"] == rule);
        found.unwrap_or_else(|| panic!("{rule} in {status}"))["packets"].as_u64().unwrap()
    }

    fn access_table(&self) -> String {
        self.topology.host.sh("nft list ruleset | grep -c '_out {\\|_in {' || true")
    }
}

/// Whether a client there can connect.
fn is_open(client: &TestNetns, to: &str, patience: Duration) -> bool {
    let to = to.parse().unwrap();
    client.with(|| TcpStream::connect_timeout(&to, patience).is_ok())
}

fn what_it_opens_is_refused(sandbox: &Sandbox, mode: &[&str]) {
    let host = Host::new(sandbox);
    let outside = &host.topology.outside;
    let _servers = [
        outside.serve_tcp("192.0.2.1:25"),
        outside.serve_tcp("192.0.2.1:26"),
        outside.serve_tcp("[2001:db8::1]:25"),
    ];
    host.serve("web", &[mode, &["net.deny=out:tcp:25"]].concat());
    host.serve("free", &["net.mode=private"]);
    for (to, port, reached) in
        [("192.0.2.1", 25, false), ("2001:db8::1", 25, false), ("192.0.2.1", 26, true)]
    {
        assert_eq!(host.connects("web", to, port), reached, "{to} {port}");
        assert!(host.connects("free", to, port), "another guest: {to} {port}");
    }
    assert_eq!(host.matched("web", "out:tcp:25"), 2);
    host.holm(&["status", "web"]).ok().has("denies").has("out:tcp:25 (2 packets)");

    let said = host.set("web", "net.allow=out:tcp:25@192.0.2.0/24").ok();
    said.has("in effect now: net.allow");
    assert!(host.connects("web", "192.0.2.1", 25));
    assert!(!host.connects("web", "2001:db8::1", 25));
    assert_eq!(host.matched("web", "out:tcp:25"), 3, "it goes on counting");
    assert!(host.matched("web", "out:tcp:25@192.0.2.0/24") > 2);

    // A native guest pings from its address only if the host itself would.
    let pings = |to| mode == NATIVE || host.pings("web", to);
    assert!(pings("192.0.2.1"));
    host.holm(&["set", "web", "net.deny+=out:icmp@192.0.2.1"]).ok();
    assert!(mode == NATIVE || !pings("192.0.2.1"));
    assert!(pings("2001:db8::1"));
    host.holm(&["set", "web", "net.allow=", "net.deny="]).ok().has("in effect now");
    assert!(host.connects("web", "2001:db8::1", 25) && pings("192.0.2.1"));
    assert_eq!(host.access_table(), "0\n");
    host.holm(&["rm", "--force", "web", "free"]).ok();
}

fn what_a_private_guest_opens_is_refused(sandbox: &mut Sandbox) {
    what_it_opens_is_refused(sandbox, PRIVATE);
}

fn what_a_native_guest_opens_is_refused(sandbox: &mut Sandbox) {
    what_it_opens_is_refused(sandbox, NATIVE);
}

/// Everything is denied, but what two exceptions name.
fn what_others_open_is_dropped(sandbox: &Sandbox, mode: &[&str], at: &str) {
    let host = Host::new(sandbox);
    let (outside, here) = (&host.topology.outside, &host.topology.host);
    let _servers = [outside.serve_tcp("192.0.2.1:26"), outside.serve_tcp("192.0.2.1:25")];
    let settings = ["net.deny=in,out", "net.allow=out:tcp:26"];
    host.serve("web", &[mode, &settings].concat());
    let status = host.holm(&["status", "web", "--json"]).ok().json();
    let own = format!("{}:80", status["addresses"][0].as_str().unwrap());
    let from_host = [own.as_str(), at, "127.0.0.1:8080"];
    assert!(!is_open(outside, at, SILENCE));
    for to in from_host {
        assert!(!is_open(here, to, SILENCE), "{to}");
    }
    assert!(host.matched("web", "in") > 0);
    // Its own connections, and only those, get their answers.
    assert!(host.connects("web", "192.0.2.1", 26));
    assert!(!host.connects("web", "192.0.2.1", 25));
    assert!(host.connects("web", "127.0.0.1", 80), "its loopback");
    host.holm(&["set", "web", "net.allow+=in:tcp:80@192.0.2.1"]).ok();
    assert!(is_open(outside, at, PATIENCE), "the guest's port, and the client's address");
    for to in from_host {
        assert!(!is_open(here, to, SILENCE), "another client: {to}");
    }
    host.set("web", "net.deny=out").ok();
    // The host asks a native guest from the guest's own address, which may open nothing.
    for to in from_host.iter().filter(|_| mode == PRIVATE) {
        assert!(is_open(here, to, PATIENCE), "nothing is denied: {to}");
    }
    host.holm(&["rm", "--force", "web"]).ok();
}

fn guests_that_share_an_address_have_rules_of_their_own(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let outside = &host.topology.outside;
    let _servers = [outside.serve_tcp("192.0.2.1:25"), outside.serve_tcp("192.0.2.1:26")];
    let run = |name: &str, port: &str, v6: &str, settings: &[&str]| {
        let address = format!("net.address=192.0.2.10,{v6}");
        let own = ["net.mode=native", "net.interface=up0", "net.share-address=true", &address];
        host.run(name, &[&own, settings].concat(), &["httpd", "-f", "-p", port, "-h", "/etc"]).ok();
    };
    run("one", "80", "2001:db8::10", &["net.deny=out:tcp:25,in:tcp:80"]);
    run("two", "81", "2001:db8::20", &[]);
    run("three", "82", "2001:db8::30", &["net.deny=in:tcp:82"]);
    let open = || {
        ["192.0.2.10:80", "192.0.2.10:81", "192.0.2.10:82"].map(|to| is_open(outside, to, SILENCE))
    };
    let connects = |name| [25, 26].map(|port| host.connects(name, "192.0.2.1", port));
    host.sandbox
        .wait_for("the servers", || is_open(outside, "192.0.2.10:81", SILENCE).then_some(()));
    assert_eq!(open(), [false, true, false]);
    assert!(!is_open(outside, "[2001:db8::10]:80", SILENCE), "its own address");
    assert_eq!((connects("one"), connects("two")), ([false, true], [true, true]));
    assert_eq!(host.matched("one", "out:tcp:25"), 1);
    assert!(host.matched("one", "in:tcp:80") > 0);
    // Its loopback is not the shared address.
    assert!(host.connects("one", "127.0.0.1", 80));

    host.set("two", "net.deny=out:tcp:26").ok().has("in effect now");
    host.set("one", "net.deny=in:tcp:80").ok();
    assert_eq!((connects("one"), connects("two")), ([true, true], [true, false]));
    assert_eq!(open(), [false, true, false]);
    host.topology.host.sh("nft flush ruleset");
    host.holm(&["ls"]).ok();
    assert_eq!((open(), connects("two")), ([false, true, false], [true, false]));
    // One whose end leaves its rules, as its cgroup is gone, is in nobody's way.
    host.holm(&["kill", "three"]).ok();
    host.holm(&["rm", "--force", "one"]).ok();
    assert_eq!(connects("two"), [true, false]);
    host.holm(&["start", "three"]).ok();
    assert_eq!(open(), [false, true, false]);
    host.holm(&["rm", "--force", "two", "three"]).ok();
    assert!(!host.topology.host.sh("nft list tables").contains("-access"));
}

fn what_others_open_to_a_private_guest_is_dropped(sandbox: &mut Sandbox) {
    what_others_open_is_dropped(sandbox, PRIVATE, "192.0.2.2:8080");
}

/// The guest's own requests, and the answers of its monitor, pass no hook of the host.
fn dhcp_is_not_refused(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.serve("web", &["net.deny=in,out"]);
    let ask = ["exec", "web", "--", "udhcpc", "-n", "-q", "-f", "-i", "eth0", "-s", "/bin/true"];
    let asked = host.holm(&ask).ok();
    assert!([asked.stdout, asked.stderr].concat().contains("lease of"), "it got one");
    assert!(!host.pings("web", "192.0.2.1"));
    host.holm(&["rm", "--force", "web"]).ok();
}

fn what_others_open_to_a_native_guest_is_dropped(sandbox: &mut Sandbox) {
    what_others_open_is_dropped(sandbox, NATIVE, "192.0.2.10:80");
}

fn an_open_connection_is_refused_too(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let server = host.topology.outside.with(|| TcpListener::bind("192.0.2.1:25").unwrap());
    host.serve("web", PRIVATE);
    thread::scope(|scope| {
        let client = scope.spawn(|| host.connects("web", "192.0.2.1", 25));
        let (mut stream, _) = server.accept().unwrap();
        stream.write_all(b"before\n").unwrap();
        host.set("web", "net.deny=out:tcp:25").ok();
        // Each packet asks for an answer, and the first answer is refused. Its end comes after.
        while !client.is_finished() {
            let _ = stream.write_all(b"after\n");
            thread::sleep(Duration::from_millis(50));
        }
        let _ = stream.read(&mut [0; 8]);
    });
    assert!(host.matched("web", "out:tcp:25") > 0);
    host.holm(&["rm", "--force", "web"]).ok();
}

fn rules_stay_with_the_addresses_of_a_native_guest(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let outside = &host.topology.outside;
    host.serve("web", &[NATIVE, &["net.deny=in:tcp:80@192.0.2.1"]].concat());
    host.set("web", "net.address+=192.0.2.11").ok().has("in effect now: net.address");
    host.sandbox
        .wait_for("the web server", || host.connects("web", "192.0.2.11", 80).then_some(()));
    for address in ["192.0.2.10:80", "192.0.2.11:80"] {
        assert!(!is_open(outside, address, SILENCE), "{address}");
    }
    assert!(host.matched("web", "in:tcp:80@192.0.2.1") > 1);
    host.set("web", "net.address=192.0.2.10,2001:db8::10").ok();
    let rules = host.topology.host.sh("nft list ruleset");
    assert!(rules.contains("192.0.2.10 : jump") && !rules.contains("192.0.2.11"), "{rules}");
    host.holm(&["rm", "--force", "web"]).ok();
}

fn flushed_access_rules_are_restored(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let _server = host.topology.outside.serve_tcp("192.0.2.1:25");
    for (name, mode) in [("own", PRIVATE), ("shared", NATIVE)] {
        host.serve(name, &[mode, &["net.deny=out:tcp:25"]].concat());
    }
    let said = "net.deny had been flushed and was restored";
    for args in [&["ls"][..], &["status", "own", "shared"]] {
        host.topology.host.sh("nft flush ruleset");
        assert!(host.connects("shared", "192.0.2.1", 25), "nothing is refused");
        let printed = host.holm(args).ok();
        assert!([printed.stdout, printed.stderr].concat().contains(said), "{args:?}");
        for name in ["own", "shared"] {
            assert!(!host.connects(name, "192.0.2.1", 25), "{name}");
        }
        let again = host.holm(args).ok();
        assert!(![again.stdout, again.stderr].concat().contains(said), "{args:?}");
    }
    // Seen from another network namespace nothing is missing.
    let printed = host.topology.outside.with(|| host.sandbox.holm(&["ls"])).ok();
    assert!(!printed.stderr.contains("net.deny"), "{printed}");
    assert_eq!(host.topology.outside.sh("nft list tables"), "");
    host.holm(&["rm", "--force", "own", "shared"]).ok();
}

fn nothing_of_access_rules_stays(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let has_table = || host.topology.host.sh("nft list tables").contains("-access");
    host.serve("plain", PRIVATE);
    assert!(!has_table(), "nobody needs it");
    for (name, mode) in [("one", &[][..]), ("two", NATIVE)] {
        host.serve(name, &[mode, &["net.deny=out:tcp:25,in:udp"]].concat());
    }
    assert_eq!(host.access_table(), "4\n");
    host.holm(&["stop", "one"]).ok();
    assert_eq!(host.access_table(), "2\n");
    host.holm(&["kill", "two"]).ok();
    host.sandbox.wait_for("the end", || (!has_table()).then_some(()));
    host.holm(&["rm", "--force", "--all"]).ok();
    // The monitor cleans up, and whoever comes after one that was killed.
    let run = ["run", "--base", "busybox", "--set", "net.deny=in", "--", "true"];
    host.holm(&run).ok();
    assert!(!has_table());
    host.topology.kill_at(
        sandbox,
        "net-admit",
        &["launch", "half", "--base", "busybox", "--set", "net.deny=in", "--", "true"],
    );
    assert!(has_table());
    host.holm(&["ls"]).ok();
    assert!(!has_table(), "after a killed start");
    host.holm(&["rm", "--force", "--all"]).ok();
}

fn a_killed_change_of_access_rules_is_repaired(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let _server = host.topology.outside.serve_tcp("192.0.2.1:25");
    host.serve("web", PRIVATE);
    for step in ["network-recorded", "change-access", "network-changed"] {
        host.topology.kill_at(sandbox, step, &["set", "web", "net.deny=out:tcp:25"]);
        let get = ["get", "web", "net.deny"];
        host.holm(&get).ok().has("none");
        // The same again is whole, and so is its undoing.
        host.set("web", "net.deny=out:tcp:25").ok();
        assert!(!host.connects("web", "192.0.2.1", 25), "{step}");
        host.topology.kill_at(sandbox, step, &["set", "web", "net.deny="]);
        host.holm(&["stop", "web"]).ok();
        assert_eq!(host.access_table(), "0\n", "{step}");
        host.holm(&["start", "web"]).ok();
        assert!(!host.connects("web", "192.0.2.1", 25), "{step}");
        host.set("web", "net.deny=").ok();
        assert!(host.connects("web", "192.0.2.1", 25), "{step}");
        assert_eq!(host.access_table(), "0\n", "{step}");
    }
    host.holm(&["rm", "--force", "web"]).ok();
}

fn access_rules_that_cannot_be_are_told(sandbox: &mut Sandbox) {
    sandbox.holm(&["create", "web", "--base", "busybox"]).ok();
    let set = |settings: &[&str]| sandbox.holm(&[&["set", "web"], settings].concat());
    set(&["net.deny=out:smtp"]).rejected(&["\"smtp\" is not tcp, udp or icmp", "out:tcp:25"]);
    set(&["net.allow=out:tcp:443"]).rejected(&["net.deny, which is empty"]);
    set(&["net.mode=none", "net.deny=out"]).rejected(&["net.deny conflicts with net.mode"]);
    set(&["net.mode=host", "net.deny=out"]).rejected(&["net.deny conflicts with net.mode"]);
    let many: Vec<String> = (1..66).map(|port| format!("out:tcp:{port}")).collect();
    set(&[&format!("net.deny={}", many.join(","))]).rejected(&["net.deny", "at most 64"]);
    set(&["net.deny=in,in"]).rejected(&["net.deny", "twice"]);
    let shown = sandbox.holm(&["get", "web", "net.deny", "--json"]).ok().json();
    assert_ne!(shown, Value::Null, "nothing has changed");
    sandbox.holm(&["rm", "web"]).ok();
}
