//! What changes while native guests run, or with them: addresses of the host, those of a guest, and
//! the programs.

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use holm_sys::bpf;

use super::arrival::{classifiers, look_at_filters};
use super::{Host, ONE, TWO, programs};
use crate::process::Stopped;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use crate::topics::net::topology::PATIENCE;

pub const TESTS: &[Test] = &[
    test!(an_interface_has_the_addresses_while_the_guest_runs).bases(&["busybox"]),
    test!(addresses_change_while_the_guest_runs).bases(&["busybox"]),
    test!(a_killed_change_of_addresses_is_repaired).bases(&["busybox"]),
    test!(programs_of_another_build_are_replaced).bases(&["busybox"]),
];

/// Addresses that the host does not have by itself.
const ADDED: &str = "192.0.2.50,2001:db8::50";

/// The addresses of the host's uplink.
fn shown(host: &Host<'_>) -> String {
    host.topology.host.sh("ip -o addr show dev up0 scope global")
}

fn an_interface_has_the_addresses_while_the_guest_runs(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let address = format!("net.address={ADDED},192.0.2.10");
    let mount = format!("mounts+={}:/probe:ro", host.probe.display());
    let create = |name: &str, interface: &str| {
        let interface = format!("net.interface={interface}");
        let head = ["create", name, "--base", "busybox", "--net", "native", "--set", &address];
        let settings = ["--set", &mount, "--set", &interface, "--", "/probe/holm-probe"];
        host.holm(&[&head[..], &settings, &["serve", name]].concat()).ok();
    };
    create("none", "up1");
    host.holm(&["start", "none"]).refused(&["this host has no interface up1", "ip link"]);
    create("one", "up0");
    let before = shown(&host);
    for step in ["native-programs", "native-addresses", "net-admit"] {
        host.kill_at(step, &["start", "one"]);
        host.wait_for_end("one");
        assert_eq!(shown(&host), before, "after {step}");
    }
    host.holm(&["start", "one"]).ok();
    let with = shown(&host);
    assert!(with.contains("inet 192.0.2.50/32"), "{with}");
    let v6 = with.lines().find(|line| line.contains("inet6 2001:db8::50/128"));
    assert!(v6.is_some_and(|line| line.contains("deprecated")), "{with}");
    for at in ["192.0.2.50", "2001:db8::50"] {
        let client = if at.contains(':') { "2001:db8::1" } else { "192.0.2.1" };
        let to = std::net::SocketAddr::new(at.parse().unwrap(), 81).to_string();
        let answer = sandbox.wait_for("an answer", || {
            let answer = host.ask_from(true, "tcp", &to);
            (answer != "ConnectionRefused").then_some(answer)
        });
        assert_eq!(answer, format!("one asked by {client} at {at}"));
    }
    host.holm(&["restart", "one"]).ok();
    assert_eq!(shown(&host), with);
    host.holm(&["kill", "one"]).ok();
    assert_eq!(shown(&host), before);
    // Of two that start at once, the one that is refused does not take the other's away.
    create("two", "up0");
    let mut start = sandbox.command_with_fault("HOLM_STOP_AT", "record");
    start.args(["start", "one"]);
    let mut late = host.topology.host.with(|| Stopped::of(sandbox, &mut start, "record"));
    host.holm(&["start", "two"]).ok();
    let (status, said) = late.resume(sandbox);
    assert!(!status.success() && said.contains("is in use"), "{said}");
    assert_eq!(shown(&host), with);
    host.holm(&["kill", "two"]).ok();
    assert_eq!(shown(&host), before);
    sandbox.holm(&["rm", "one", "two", "none"]).ok();
}

fn addresses_change_while_the_guest_runs(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.serve("one", "192.0.2.10,2001:db8::10");
    host.launch("two", TWO, &["sleep", "100000"]).ok();
    let before = shown(&host);
    let serves = |at: &str| host.ask_from(true, "tcp", at).starts_with("one asked");
    let set = |addresses: &str| {
        host.holm(&["set", "one", &format!("net.address={addresses}"), "net.interface=up0"])
    };
    assert!(!serves("192.0.2.11:80"));
    // One that the host has, and one that it gets.
    let all = "192.0.2.11,192.0.2.50,192.0.2.10,2001:db8::10";
    let said = set(all).ok();
    assert!(said.stdout.contains("in effect now: net.address"), "{}", said.stdout);
    for at in ["192.0.2.10:80", "192.0.2.11:80", "192.0.2.50:80", "[2001:db8::10]:81"] {
        assert!(serves(at), "{at}");
    }
    // Its sockets are bound to the address that was its first, and it connects from there.
    assert_eq!(host.ask("one", "tcp", "192.0.2.11:80"), "one asked by 192.0.2.10 at 192.0.2.11");
    let shown_now = host.holm(&["status", "one", "--json"]).ok().json();
    assert_eq!(shown_now["addresses"][0], "192.0.2.10", "{shown_now}");
    // What is another guest's, or not there, changes nothing.
    set(&format!("{all},192.0.2.20")).refused(&["192.0.2.20 is in use"]);
    host.holm(&[
        "set",
        "one",
        "net.interface=up1",
        "net.address=192.0.2.10,2001:db8::10,192.0.2.51",
    ])
    .refused(&["no interface up1"]);
    for at in ["192.0.2.11:80", "192.0.2.50:80"] {
        assert!(serves(at), "{at}");
    }
    let said = set("192.0.2.10,2001:db8::10").ok();
    assert!(said.stdout.contains("in effect now: net.address"), "{}", said.stdout);
    assert!(serves("192.0.2.10:80") && !serves("192.0.2.11:80") && !serves("192.0.2.50:80"));
    assert_eq!(shown(&host), before);
    host.launch("three", "192.0.2.11", &["sleep", "100000"]).ok();
    // Another first address waits for the next start.
    let said = set("192.0.2.50,2001:db8::10").ok();
    assert!(said.stdout.contains("at the next start: net.address"), "{said:?}");
    assert!(serves("192.0.2.10:80") && !serves("192.0.2.50:80"));
    // So does another mode.
    host.holm(&["unset", "two", "net.address"]).ok();
    let said = host.holm(&["set", "two", "net.mode=private"]).ok();
    assert!(said.stdout.contains("at the next start: net.mode"), "{said:?}");
    host.launch("four", "192.0.2.20", &["true"]).refused(&["192.0.2.20 is in use"]);
    host.holm(&["kill", "one", "two", "three"]).ok();
    assert_eq!(shown(&host), before);
    sandbox.holm(&["rm", "one", "two", "three"]).ok();
}

fn a_killed_change_of_addresses_is_repaired(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let before = shown(&host);
    host.launch("one", "192.0.2.10", &["sleep", "100000"]).ok();
    for step in ["network-recorded", "native-addresses", "native-given", "network-changed"] {
        let set = ["set", "one", "net.interface=up0", "net.address=192.0.2.10,192.0.2.60"];
        host.kill_at(step, &set);
        // The next change makes it what it is to be, and so does the guest's end.
        host.holm(&["set", "one", "net.address=192.0.2.10,192.0.2.11"]).ok();
        assert_eq!(shown(&host), before, "after {step}");
        host.launch("other", "192.0.2.11", &["sleep", "100000"]).refused(&["in use"]);
        host.holm(&["set", "one", "net.address=192.0.2.10"]).ok();
        host.kill_at(step, &set);
        host.holm(&["kill", "one"]).ok();
        assert_eq!(shown(&host), before, "after {step} and the end");
        host.holm(&["start", "one"]).ok();
    }
    sandbox.holm(&["rm", "--force", "one"]).ok();
}

/// The programs of all links, by their ids (`/proc/PID/fdinfo`).
fn loaded(programs: &Path) -> Vec<String> {
    let pinned = std::fs::read_dir(programs).expect("the bpf filesystem");
    let id = |path: PathBuf| {
        let link = bpf::open_pinned(&path).ok()?;
        let info = format!("/proc/self/fdinfo/{}", link.as_raw_fd());
        let text = std::fs::read_to_string(info).expect("what the kernel says of a link");
        text.lines().any(|line| line.starts_with("link_id:")).then_some(())?;
        let program = text.lines().find(|line| line.starts_with("prog_id:"))?;
        Some(format!("{} {program}", path.display()))
    };
    let mut all: Vec<_> = pinned.filter_map(|entry| id(entry.ok()?.path())).collect();
    all.sort_unstable();
    all
}

fn programs_of_another_build_are_replaced(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.topology.host.sh("ip link add gone0 type bridge");
    host.holm(&["launch", "private", "--base", "busybox", "--", "sleep", "100000"]).ok();
    host.serve("one", ONE);
    let [interface] = &classifiers(&host)[..] else { panic!("{:?}", classifiers(&host)) };
    let classifier = look_at_filters(&host, interface);
    let mut connection = host.topology.outside.with(|| {
        let to = "192.0.2.11:7".parse().unwrap();
        std::net::TcpStream::connect_timeout(&to, PATIENCE).expect("its echo server")
    });
    let programs = PathBuf::from(programs(sandbox));
    let before = loaded(&programs);
    assert!(before.len() >= 18, "{before:?}");
    host.launch("two", TWO, &["sleep", "100000"]).ok();
    assert_eq!(loaded(&programs), before, "the same build replaces nothing");
    host.holm(&["kill", "two"]).ok();
    let build = |programs: &Path| {
        let mut names = std::fs::read_dir(programs).unwrap().map(|entry| entry.unwrap().path());
        names.find(|path| path.to_string_lossy().contains("/build-")).expect("the name of a build")
    };
    let own = build(&programs);
    std::fs::rename(&own, programs.join("build-of-before")).expect("a bpf filesystem");
    // There is nothing to replace at an interface that is gone.
    host.topology.host.sh("ip link del gone0");
    host.holm(&["start", "two"]).ok();
    assert_eq!(build(&programs), own);
    let after = loaded(&programs);
    assert_eq!(after.len(), before.len() - 1);
    assert!(after.iter().all(|program| !before.contains(program)), "{before:?} {after:?}");
    let replaced = look_at_filters(&host, interface);
    assert!(replaced != classifier && replaced.lines().count() == 2, "{classifier}{replaced}");
    // What was connected is, and what listened does.
    connection.write_all(b"?").unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    connection.read_exact(&mut [0; 1]).expect("its answer");
    for at in ["192.0.2.10:80", "192.0.2.11:80"] {
        assert!(host.ask_from(true, "tcp", at).starts_with("one asked"), "{at}");
    }
    // They cannot be replaced by those that want other maps.
    host.holm(&["kill", "two"]).ok();
    std::fs::rename(&own, programs.join("build-of-after")).expect("a bpf filesystem");
    let map = programs.join("asked");
    std::fs::remove_file(&map).unwrap();
    let other = bpf::Map::create("asked", bpf::MapKind::Hash(1), (8, 8)).expect("a map");
    bpf::pin(other.as_fd(), &map).unwrap();
    host.holm(&["start", "two"]).refused(&["another version of Holm", "asked", "stop the native"]);
    assert_eq!(loaded(&programs), after);
    sandbox.holm(&["rm", "--force", "one", "two", "private"]).ok();
}
