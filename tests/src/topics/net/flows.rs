//! `holm flows`: which guest had an address and port at a time.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;

use rustix::net::{AddressFamily, SocketFlags, SocketType, netlink, send, socket_with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::topology::{Host, Server};
use crate::guest::pid;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(connections_are_told_by_the_port_that_others_see).bases(&["busybox"]),
    test!(addresses_and_ports_are_told_after_the_guest_is_gone).bases(&["busybox"]),
    test!(flows_go_on_after_a_flush_and_without_the_first_monitor).bases(&["busybox"]),
    test!(guests_that_share_an_address_are_told_apart).bases(&["busybox"]),
    test!(the_last_flows_are_recorded).bases(&["busybox"]),
    test!(flows_that_are_lost_are_told).bases(&["busybox"]),
    test!(damaged_records_are_passed_over).bases(&["busybox"]),
    test!(nothing_of_flows_stays).bases(&["busybox"]),
    test!(flows_that_cannot_be_are_told).bases(&["busybox"]),
];

const SLEEP: &[&str] = &["sleep", "3600"];

impl Host<'_> {
    /// Starts a guest whose connections are recorded.
    fn record(&self, name: &str) {
        let mount = format!("mounts+={}:/probe:ro", self.sandbox.probe_directory().display());
        self.run(name, &["net.flows=true", &mount], SLEEP).ok();
    }

    /// Servers at the same port of both addresses outside.
    fn tell_clients(&self, port: u16) -> [[Server; 2]; 2] {
        let outside = &self.topology.outside;
        ["192.0.2.1", "[2001:db8::1]"]
            .map(|address| outside.tell_clients(&format!("{address}:{port}")))
    }

    /// Has a guest ask a server outside; returns which client that has seen.
    fn ask(&self, guest: &str, protocol: &str, server: &str) -> SocketAddr {
        let probe = ["exec", guest, "--", "/probe/holm-probe", "ask", protocol, server];
        let asked = self.holm(&probe).ok().stdout;
        asked.trim().parse().unwrap_or_else(|_| panic!("{protocol} {server}: {asked}"))
    }

    /// What is recorded.
    fn flows(&self, args: &[&str]) -> Vec<Value> {
        let all = self.holm(&[&["flows", "--json"], args].concat()).ok().json();
        all.as_array().unwrap().clone()
    }

    /// Who has opened a connection with this address and port. The kernel tells it within a second.
    fn who(&self, client: SocketAddr) -> Value {
        let client = client.to_string();
        self.sandbox.wait_for(&format!("the connection of {client}"), || {
            let found = self.flows(&["--address", &client]);
            found.into_iter().find(|flow| flow["kind"] == "connection")
        })
    }

    /// The kinds and names of what is recorded of an address.
    fn had(&self, address: &str) -> Vec<(String, String)> {
        let text = |flow: &Value, key: &str| flow[key].as_str().unwrap().to_owned();
        let found = self.flows(&["--address", address]);
        found.iter().map(|flow| (text(flow, "kind"), text(flow, "name"))).collect()
    }
}

fn connections_are_told_by_the_port_that_others_see(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let _servers = host.tell_clients(25);
    host.record("web");
    host.record("db");
    let mount = format!("mounts+={}:/probe:ro", sandbox.probe_directory().display());
    host.run("mute", &[&mount], SLEEP).ok();
    let unrecorded = host.ask("mute", "tcp", "192.0.2.1:25");
    for (name, protocol, server) in [
        ("web", "tcp", "192.0.2.1:25"),
        ("db", "tcp", "192.0.2.1:25"),
        ("web", "tcp", "[2001:db8::1]:25"),
        ("web", "udp", "192.0.2.1:25"),
        ("db", "udp", "[2001:db8::1]:25"),
    ] {
        let client = host.ask(name, protocol, server);
        let flow = host.who(client);
        assert_eq!((&flow["name"], &flow["protocol"]), (&name.into(), &protocol.into()), "{flow}");
        let server: SocketAddr = server.parse().unwrap();
        assert_eq!(flow["peer_address"], server.ip().to_string(), "{flow}");
        assert_eq!(flow["peer_port"], 25, "{flow}");
        let row = host.holm(&["flows", "--address", &client.to_string()]).ok();
        row.has(name).has(&format!("{protocol} {client}")).has(&server.to_string());
        // Another moment, and another guest.
        let ask = ["--address", &client.to_string(), "--until", "2020-01-01T00:00:00Z"];
        assert_eq!(host.flows(&ask), Vec::<Value>::new());
        assert_eq!(host.flows(&["--address", &client.to_string(), "mute"]), Vec::<Value>::new());
    }
    let ping = ["exec", "web", "--", "ping", "-c", "1", "192.0.2.1"];
    host.holm(&ping).ok();
    sandbox.wait_for("the ping", || {
        host.flows(&["web"]).into_iter().find(|flow| flow["protocol"] == "icmp")
    });
    // Each connection once, and nothing of who is not recorded.
    let connections = host.flows(&["--address", "192.0.2.2"]);
    let of = |name: &str| {
        let is_one = |flow: &&Value| flow["kind"] == "connection" && flow["name"] == name;
        connections.iter().filter(is_one).count()
    };
    assert_eq!((of("web"), of("db"), of("mute")), (3, 1, 0), "{connections:?}");
    let unrecorded = host.flows(&["--address", &unrecorded.to_string()]);
    assert!(unrecorded.iter().all(|flow| flow["kind"] != "connection"), "{unrecorded:?}");
    host.holm(&["rm", "--force", "--all"]).ok();
}

fn addresses_and_ports_are_told_after_the_guest_is_gone(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.topology.host.sh("ip addr add 192.0.2.11/32 dev up0");
    let both = |kind: &str, name: &str| (kind.to_owned(), name.to_owned());
    host.run("web", &["net.publish=8080:80"], SLEEP).ok();
    host.run("db", &["net.mode=native", "net.address=192.0.2.10"], SLEEP).ok();
    assert_eq!(host.had("192.0.2.10:9"), [both("address", "db")]);
    assert_eq!(host.had("192.0.2.2:8080"), [both("ports", "web")]);
    assert_eq!(host.had("192.0.2.2:8081"), []);
    let flow = &host.flows(&["db"])[0];
    assert_eq!((&flow["running"], &flow["until"]), (&true.into(), &Value::Null), "{flow}");
    host.holm(&["flows", "db"]).ok().has("192.0.2.10, all ports").has("now");
    // One that has run for longer than the log goes back.
    let runs = sandbox.root().join("flows/runs");
    let kept = fs::read(&runs).unwrap();
    fs::write(&runs, "").unwrap();
    assert_eq!(host.flows(&["db"])[0]["running"], true);
    fs::write(&runs, kept).unwrap();
    host.holm(&["set", "db", "net.address=192.0.2.10,192.0.2.11"]).ok();
    assert_eq!(host.had("192.0.2.11:9"), [both("address", "db")]);
    host.holm(&["set", "db", "net.address=192.0.2.10"]).ok();
    let had = host.flows(&["--address", "192.0.2.11:9"]);
    assert!(had.len() == 1 && had[0]["until"].is_string(), "{had:?}");
    let has = host.flows(&["--address", "192.0.2.10:9"]);
    assert!(has.len() == 1 && has[0]["running"] == true, "one row through all changes: {has:?}");
    host.holm(&["rm", "--force", "--all"]).ok();
    host.run("db", &["net.mode=host"], SLEEP).ok();
    for (name, address) in [("web", "192.0.2.2:8080"), ("db", "192.0.2.10")] {
        let flows = host.flows(&["--address", address, name]);
        let flow = flows.iter().find(|flow| flow["kind"] != "host").unwrap();
        assert!(flow["until"].is_string() && flow["running"] == false, "{flow}");
    }
    // It may have been this one, by any address of the host.
    assert!(host.had("192.0.2.2:12345").contains(&both("host", "db")));
    // One that ends with its command, whose host is found dead, and one without a network.
    host.holm(&["run", "--name", "short", "--base", "busybox", "--", "true"]).ok();
    let flow = &host.flows(&["short"])[0];
    assert!(flow["until"].is_string(), "{flow}");
    host.run("alone", &["net.mode=none"], SLEEP).ok();
    assert_eq!(host.flows(&["alone"]), Vec::<Value>::new());
    host.holm(&["rm", "--force", "--all"]).ok();
}

fn flows_go_on_after_a_flush_and_without_the_first_monitor(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let _servers = host.tell_clients(25);
    host.record("web");
    host.topology.host.sh("nft flush ruleset");
    host.holm(&["ls"]).ok();
    let client = host.ask("web", "tcp", "192.0.2.1:25");
    assert_eq!(host.who(client)["name"], "web", "after a flush");
    let monitor = pid(&host.holm(&["status", "web", "--json"]).ok().json(), "monitor_pid");
    kill_process(Pid::from_raw(monitor).unwrap(), Signal::KILL).unwrap();
    sandbox.wait_for("another monitor", || {
        let status = host.holm(&["status", "web", "--json"]).ok().json();
        (pid(&status, "monitor_pid") != monitor).then_some(())
    });
    let client = host.ask("web", "udp", "192.0.2.1:25");
    assert_eq!(host.who(client)["name"], "web", "after the first monitor");
    host.holm(&["rm", "--force", "web"]).ok();
}

/// As the slices of `PlanetLab` were: several at one address of the host.
fn guests_that_share_an_address_are_told_apart(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let _servers = host.tell_clients(25);
    let mount = format!("mounts+={}:/probe:ro", sandbox.probe_directory().display());
    let share = ["net.mode=native", "net.address=192.0.2.10", "net.share-address=true", &mount];
    for name in ["one", "two"] {
        host.run(name, &[&share[..], &["net.flows=true"]].concat(), SLEEP).ok();
    }
    host.run("mute", &share, SLEEP).ok();
    let asked = |name: &str| {
        for protocol in ["tcp", "udp"] {
            let client = host.ask(name, protocol, "192.0.2.1:25");
            assert_eq!(client.ip().to_string(), "192.0.2.10");
            let flow = host.who(client);
            assert_eq!((&flow["name"], &flow["protocol"]), (&name.into(), &protocol.into()));
        }
    };
    asked("one");
    asked("two");
    let unrecorded = host.ask("mute", "tcp", "192.0.2.1:25");
    for args in [&["ls"][..], &["status", "one", "two"]] {
        host.topology.host.sh("nft flush ruleset");
        let printed = host.holm(args).ok();
        let said = [printed.stdout, printed.stderr].concat();
        assert!(said.contains("net.flows had been flushed and was restored"), "{said}");
        asked("two");
    }
    asked("one");
    // The end of one, and what nobody records.
    host.holm(&["rm", "--force", "one"]).ok();
    asked("two");
    let rules = || host.topology.host.sh("nft list ruleset | grep -o 'flows_[0-9]' | wc -l");
    assert_eq!(rules(), "2\n", "a chain and an element");
    let had = host.flows(&["--address", &unrecorded.to_string()]);
    assert!(had.iter().all(|flow| flow["kind"] == "address"), "{had:?}");
    assert_eq!(had.len(), 3, "who had the address: {had:?}");
    let connections =
        |name| host.flows(&[name]).iter().filter(|flow| flow["kind"] == "connection").count();
    assert_eq!((connections("one"), connections("two")), (4, 8));
    host.holm(&["rm", "--force", "two", "mute"]).ok();
    assert_eq!(rules(), "0\n");
}

/// What the kernel has not told yet when the guest ends: nothing comes later.
fn the_last_flows_are_recorded(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let _servers = host.tell_clients(25);
    for name in ["one", "two", "three"] {
        host.record(name);
        let client = host.ask(name, "tcp", "192.0.2.1:25");
        host.holm(&["kill", name]).ok();
        let last = host.flows(&["--address", &client.to_string()]);
        assert!(last.iter().any(|flow| flow["kind"] == "connection"), "{name}: {last:?}");
    }
    host.holm(&["rm", "--force", "--all"]).ok();
}

/// A guest opens more than its monitor takes, which is stopped: that is told, and what comes later
/// is recorded.
fn flows_that_are_lost_are_told(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let _servers = host.tell_clients(25);
    // It drops them: answers would only make the test slower.
    host.topology.outside.sh("nft add table inet t
        nft 'add chain inet t in { type filter hook prerouting priority raw; }'
        nft add rule inet t in udp dport 1024-65535 drop");
    host.record("web");
    let monitor = pid(&host.holm(&["status", "web", "--json"]).ok().json(), "monitor_pid");
    let monitor = Pid::from_raw(monitor).unwrap();
    kill_process(monitor, Signal::STOP).unwrap();
    host.holm(&["exec", "web", "--", "/probe/holm-probe", "flood-ports", "192.0.2.1", "16000"])
        .ok();
    kill_process(monitor, Signal::CONT).unwrap();
    sandbox.wait_for("what is lost", || {
        host.flows(&["web"]).into_iter().find(|flow| flow["kind"] == "lost")
    });
    host.holm(&["flows", "web"]).ok().has("more connections than could be recorded");
    let client = host.ask("web", "tcp", "192.0.2.1:25");
    assert_eq!(host.who(client)["name"], "web");
    host.holm(&["rm", "--force", "web"]).ok();
}

/// Half a record at the end, as a full disk leaves it, and a file that is as long as it may be.
fn damaged_records_are_passed_over(sandbox: &mut Sandbox) {
    const LIMIT: usize = 4 << 20;
    let host = Host::new(sandbox);
    let _servers = host.tell_clients(25);
    let directory = sandbox.root().join("flows/connections/web");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("log"), [7; 100]).unwrap();
    host.record("web");
    let client = host.ask("web", "tcp", "192.0.2.1:25");
    host.who(client);
    host.holm(&["stop", "web"]).ok();
    fs::write(directory.join("log"), vec![0; LIMIT]).unwrap();
    let mut runs =
        fs::File::options().append(true).open(sandbox.root().join("flows/runs")).unwrap();
    runs.write_all(b"{\"at\":7,\"gue").unwrap();
    host.holm(&["start", "web"]).ok();
    assert_eq!(host.flows(&["web"]).iter().filter(|flow| flow["running"] == true).count(), 2);
    let client = host.ask("web", "tcp", "192.0.2.1:25");
    host.who(client);
    let size = |name| fs::metadata(directory.join(name)).unwrap().len();
    assert!(size("log") < 4096 && size("log.1") > 4_000_000, "{} {}", size("log"), size("log.1"));
    host.holm(&["rm", "--force", "web"]).ok();
}

fn nothing_of_flows_stays(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let rules = || host.topology.host.sh("nft list ruleset | grep -o 'flows_[0-9]' | wc -l");
    let listeners = || {
        let all = host.topology.host.sh("cat /proc/net/netfilter/nfnetlink_log");
        // The other half of the groups is of requests.
        let group = |line: &str| line.split_whitespace().next().unwrap().parse::<u32>().unwrap();
        all.lines().filter(|line| group(line) < 1 << 15).count()
    };
    host.run("plain", &[], SLEEP).ok();
    assert_eq!((rules().as_str(), listeners()), ("0\n", 0), "nobody is recorded");
    host.record("one");
    host.record("two");
    assert_eq!((rules().as_str(), listeners()), ("4\n", 2), "a chain and an element for each");
    host.holm(&["stop", "one"]).ok();
    assert_eq!(listeners(), 1);
    host.holm(&["kill", "two"]).ok();
    sandbox.wait_for("the end", || (listeners() == 0).then_some(()));
    for step in ["socket", "net-admit"] {
        host.topology.kill_at(sandbox, step, &["start", "one"]);
        sandbox.wait_for(&format!("nothing of a start that was killed at {step}"), || {
            host.holm(&["ls"]).ok();
            (listeners() == 0).then_some(())
        });
        host.holm(&["start", "one"]).ok();
        assert_eq!(listeners(), 1);
        host.holm(&["stop", "one"]).ok();
    }
    // The next start of a guest with the same number removes what is left.
    for name in ["one", "two"] {
        host.holm(&["set", name, "net.flows=false"]).ok();
        host.holm(&["start", name]).ok();
    }
    assert_eq!((rules().as_str(), listeners()), ("0\n", 0));
    host.holm(&["rm", "--force", "--all"]).ok();
    // What is recorded stays for a while.
    assert!(sandbox.root().join("flows/connections/one").is_dir());
    host.holm(&["gc"]).ok();
    assert!(sandbox.root().join("flows/connections/one").is_dir());
    let old = "find \"$0\" -exec touch -d '91 days ago' {} +";
    let mut touch = std::process::Command::new("sh");
    let directory = sandbox.root().join("flows/connections");
    sandbox.run(touch.args(["-c", old]).arg(directory.join("one"))).ok();
    host.holm(&["gc"]).ok();
    assert!(!directory.join("one").exists() && directory.join("two").is_dir());
}

fn flows_that_cannot_be_are_told(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let set = |settings: &[&str]| host.holm(&[&["set", "web"], settings].concat());
    host.holm(&["create", "web", "--base", "busybox"]).ok();
    set(&["net.mode=native", "net.flows=true"]).rejected(&["net.flows", "has all ports"]);
    set(&["net.mode=host", "net.flows=true"]).rejected(&["net.flows conflicts with net.mode"]);
    for kept in [&[][..], &["--name", "kept", "--keep"]] {
        let run = [&["run", "--base", "busybox", "--set", "net.flows=true"], kept, &["--", "true"]];
        host.holm(&run.concat()).refused(&["net.flows", "holm launch"]);
    }
    assert!(!host.holm(&["ls"]).ok().stdout.contains("kept"));
    host.holm(&["flows", "--address", "192.0.2.1:x"]).rejected(&["192.0.2.2:40022"]);
    host.holm(&["flows", "--since", "yesterday"]).rejected(&["2026-11-22T19:00:00Z"]);
    // Another program has the place where its connections would be told.
    set(&["net.flows=true"]).ok();
    host.holm(&["start", "web"]).ok();
    host.holm(&["stop", "web"]).ok();
    let group = u16::try_from(sandbox.instance().unwrap() * 1024 + 1).unwrap();
    let other = host.topology.host.with(|| bind_group(group));
    host.holm(&["start", "web"]).refused(&["another program listens", &group.to_string()]);
    drop(other);
    host.holm(&["start", "web"]).ok();
    host.holm(&["rm", "--force", "web"]).ok();
}

/// Listens to a group of NFLOG.
fn bind_group(group: u16) -> rustix::fd::OwnedFd {
    let netfilter = Some(netlink::NETFILTER);
    let socket =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, netfilter);
    let socket = socket.unwrap();
    let [high, low] = group.to_be_bytes();
    let mut message = vec![28, 0, 0, 0, 1, 4, 1, 0];
    message.extend([0; 8]);
    // A nfgenmsg; NFULA_CFG_CMD: bind.
    message.extend([0, 0, high, low, 5, 0, 1, 0, 1, 0, 0, 0]);
    send(&socket, &message, rustix::net::SendFlags::empty()).unwrap();
    socket
}
