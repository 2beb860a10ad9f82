//! The host's ruleset, interfaces and settings: made, restored, removed.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use holm::config::{Net, Proto};
use holm::net::{self, Hook};

use super::topology::{PATIENCE, SILENCE, Topology};
use super::{TCP_80, published};
use crate::options::Lane;
use crate::process::Daemon;
use crate::sandbox::{Sandbox, skip};
use crate::test::{Test, test};

const NOT_THERE: &str =
    "the program is tried with the host's nftables, and is no part of the images";

pub const TESTS: &[Test] = &[
    test!(a_flushed_ruleset_is_restored_with_its_ports),
    test!(ls_and_status_restore_a_flushed_ruleset).bases(&["busybox"]),
    test!(detaching_leaves_nothing),
    test!(a_dead_guests_interface_is_replaced),
    test!(foreign_rules_stay_and_blocking_ones_are_found),
    test!(a_firewall_that_rejects_by_a_rule_is_found),
    test!(docker_lets_guests_through_when_it_is_told).not_in(Lane::Vm, NOT_THERE),
    test!(ufw_lets_guests_through_when_it_is_told).not_in(Lane::Vm, NOT_THERE),
    test!(firewalld_lets_guests_through_when_it_is_told).not_in(Lane::Vm, NOT_THERE),
    test!(forwarding_keeps_advertised_routes),
    test!(a_guest_has_rules_routes_and_interfaces_of_its_own).bases(&["busybox"]),
];

/// All rules and what is in the sets, without what packets count there, and without guests that
/// have connections now.
fn ruleset(topology: &Topology) -> String {
    let text = topology.host.sh("nft list ruleset");
    let is_of_set = |line: &str| line.contains(" ct count over") && !line.contains("add @");
    let counts = |line: &&str| line.contains("counter packets") || is_of_set(line);
    text.lines().filter(|line| !counts(line)).collect::<Vec<_>>().join("\n")
}

/// The same without what tells requests: it is there if a monitor listens, or did before.
fn without_requests(rules: &str) -> String {
    let tells =
        |part: &&str| part.contains("\tmap requests {") || part.contains("\tchain requests_");
    rules.split("\n\n").filter(|part| !tells(part)).collect::<Vec<_>>().join("\n\n")
}

fn a_flushed_ruleset_is_restored_with_its_ports(_: &mut Sandbox) {
    let topology = Topology::new();
    let guest = topology.guest(1, 1, &published(TCP_80));
    let _server = guest.netns.serve_tcp("[::]:80");
    let rules = ruleset(&topology);
    topology.host.sh("nft flush ruleset");
    assert!(topology.outside.is_cut_off_from("192.0.2.2:8080"));
    let _another = topology.guest(1, 2, &Net::default());
    assert!(topology.outside.reaches("192.0.2.2:8080").is_some());
    assert_eq!(without_requests(&ruleset(&topology)), without_requests(&rules));
}

/// With the real command in a network namespace: `ls` and `status` restore the ruleset once, and
/// say so.
fn ls_and_status_restore_a_flushed_ruleset(sandbox: &mut Sandbox) {
    let topology = Topology::new();
    let holm = |args: &[&str]| topology.host.with(|| sandbox.holm(args));
    let launch = |name: &str, net: &str| {
        let args = ["--base", "busybox", "--net", net, "--", "sleep", "100000"];
        holm(&[&["launch", name][..], &args].concat()).ok();
    };
    launch("alone", "none");
    holm(&["ls"]).ok();
    assert!(!topology.host.sh("nft list tables").contains("holm-"), "nobody needs rules");
    launch("web", "private");
    let rules = ruleset(&topology);
    assert!(rules.contains("table inet holm-"), "{rules}");
    let said = "the ruleset had been flushed and was restored";
    for (args, stderr) in [
        (&["ls"][..], true),
        (&["ls", "-q"], true),
        (&["status", "web"], false),
        (&["status", "web", "--json"], false),
    ] {
        topology.host.sh("nft flush ruleset");
        let printed = holm(args).ok();
        assert!(if stderr { &printed.stderr } else { &printed.stdout }.contains(said), "{printed}");
        assert_eq!(ruleset(&topology), rules, "{args:?}");
        let printed = holm(args).ok();
        assert!(!printed.stderr.contains(said) && !printed.stdout.contains(said), "{printed}");
    }
    // Seen from another network namespace nothing is missing.
    let printed = topology.outside.with(|| sandbox.holm(&["ls"])).ok();
    assert!(!printed.stderr.contains("rules"), "{printed}");
    assert_eq!(topology.outside.sh("nft list tables"), "");
    // A guest without a network does not need the ruleset.
    holm(&["stop", "web"]).ok();
    topology.host.sh("nft flush ruleset");
    assert!(!holm(&["ls"]).ok().stderr.contains("rules"));
    assert_eq!(topology.host.sh("nft list tables"), "");
    holm(&["rm", "--force", "--all"]).ok();
}

fn detaching_leaves_nothing(_: &mut Sandbox) {
    let topology = Topology::new();
    let first = topology.guest(1, 1, &Net::default());
    // Names only: states and link-local addresses of other interfaces may still change.
    let look = "ip -br link | cut -d' ' -f1; ip -4 route show table all; ip -6 route show table all | grep h1-2 || true
        nft list ruleset | grep -v 'counter packets'";
    let look = || without_requests(&topology.host.sh(look));
    let before = look();
    let net = published(&[(None, 8080, 80, Proto::Tcp), (Some("127.0.0.1"), 53, 53, Proto::Udp)]);
    let guest = topology.guest(1, 2, &net);
    assert_ne!(look(), before);
    topology.host.with(|| net::detach_unrecorded(1, 2).unwrap());
    assert_eq!(look(), before);
    topology.host.with(|| net::detach_unrecorded(1, 2).unwrap());
    drop((first, guest));
}

fn a_dead_guests_interface_is_replaced(_: &mut Sandbox) {
    let topology = Topology::new();
    let _dead = topology.guest(1, 1, &published(TCP_80));
    let again = topology.guest(1, 1, &published(&[(None, 8080, 81, Proto::Tcp)]));
    let _server = again.netns.serve_tcp("[::]:81");
    assert!(topology.outside.reaches("192.0.2.2:8080").is_some());
}

fn foreign_rules_stay_and_blocking_ones_are_found(_: &mut Sandbox) {
    let topology = Topology::new();
    topology.host.sh(
        "nft add table ip filter
        nft 'add chain ip filter FORWARD { type filter hook forward priority filter; policy drop; }'
        nft 'add chain ip filter INPUT { type filter hook input priority filter; policy accept; }'",
    );
    let foreign = topology.host.sh("nft list table ip filter");
    let guest = topology.guest(1, 1, &Net::default());
    let _server = topology.outside.serve_tcp("[::]:7000");
    assert!(guest.netns.is_cut_off_from("192.0.2.1:7000"));
    let blockers = topology.host.with(|| net::blockers(Hook::Forward));
    assert_eq!(blockers.len(), 1);
    assert_eq!((blockers[0].table.as_str(), blockers[0].chain.as_str()), ("ip filter", "FORWARD"));
    assert_eq!(topology.host.sh("nft list table ip filter"), foreign);
    topology.host.sh("nft insert rule ip filter FORWARD iifname 'h*' accept; nft insert rule ip filter FORWARD oifname 'h*' accept");
    assert_eq!(topology.host.with(|| net::blockers(Hook::Forward)), []);
    assert!(guest.netns.reaches("192.0.2.1:7000").is_some());
}

/// firewalld's chain accepts by its policy, and ends in a rule that rejects.
fn a_firewall_that_rejects_by_a_rule_is_found(_: &mut Sandbox) {
    let topology = Topology::new();
    topology.host.sh(
        "nft add table inet firewalld
        nft 'add chain inet firewalld filter_FORWARD { type filter hook forward priority filter + 10; policy accept; }'
        nft add rule inet firewalld filter_FORWARD ct state established,related accept
        nft add rule inet firewalld filter_FORWARD reject with icmpx type admin-prohibited",
    );
    let guest = topology.guest(1, 1, &Net::default());
    let _server = topology.outside.serve_tcp("[::]:7000");
    assert!(guest.netns.is_cut_off_from("192.0.2.1:7000"));
    let blockers = topology.host.with(|| net::blockers(Hook::Forward));
    assert_eq!(blockers.len(), 1, "{blockers:?}");
    assert!(blockers[0].remedy().contains("--zone=trusted --add-interface=h+"));
    // What firewalld makes of that.
    topology.host.sh("nft insert rule inet firewalld filter_FORWARD iifname 'h*' accept");
    assert_eq!(topology.host.with(|| net::blockers(Hook::Forward)), []);
    assert!(guest.netns.reaches("192.0.2.1:7000").is_some());
}

/// The real program, with a copy of its settings.
fn ufw_lets_guests_through_when_it_is_told(sandbox: &mut Sandbox) {
    let topology = Topology::new();
    let copy = sandbox.root().join("ufw");
    let settings = copy.display();
    topology.host.sh(&format!(
        "mkdir -p {settings}; cp -a /etc/ufw {settings}/etc; cp /etc/default/ufw {settings}/default"
    ));
    let ufw = |commands: &str| {
        topology.host.sh(&format!(
            "unshare --mount sh -ec 'mount --bind {settings}/etc /etc/ufw
             mount --bind {settings}/default /etc/default/ufw; {commands}'"
        ))
    };
    ufw("ufw --force enable");
    // Of both families, with one command.
    guests_pass_when_it_is_told(&topology, (2, true), |remedy| drop(ufw(remedy)));
    let _resolvers = ["192.0.2.2:53", "[2001:db8::2]:53"].map(|at| topology.host.serve_udp(at));
    let guest = topology.guest(1, 2, &Net { host_access: true, ..Net::default() });
    let ask = |at, patience| guest.netns.ask_udp(at, patience);
    assert_eq!(ask("192.0.2.2:53", SILENCE), None);
    let blockers = topology.host.with(|| net::blockers(Hook::Input));
    assert_eq!(blockers.len(), 2, "{blockers:?}");
    assert!(blockers.iter().all(|other| other.remedy() == blockers[0].remedy()));
    ufw(&blockers[0].remedy());
    assert_eq!(topology.host.with(|| net::blockers(Hook::Input)), []);
    for at in ["192.0.2.2:53", "[2001:db8::2]:53"] {
        assert!(ask(at, PATIENCE).is_some(), "{at}");
    }
}

/// A directory with programs of Debian packages: installed, they would begin to filter at once.
fn unpack(sandbox: &Sandbox, packages: &[&str]) -> PathBuf {
    let directory = sandbox.root().join("unpacked");
    fs::create_dir(&directory).unwrap();
    let packages = packages.join(" ");
    let script = format!(
        "apt-get -qq download {packages}; for package in *.deb; do dpkg -x $package .; done"
    );
    let unpacked = Command::new("sh").args(["-ec", &script]).current_dir(&directory).output();
    let unpacked = unpacked.unwrap();
    if !unpacked.status.success() {
        skip(&format!("{packages}: {}", String::from_utf8_lossy(&unpacked.stderr)));
    }
    directory
}

/// The real program. It sets the policy of its chain when it turns forwarding on itself.
fn docker_lets_guests_through_when_it_is_told(sandbox: &mut Sandbox) {
    let topology = Topology::new();
    let directory = unpack(sandbox, &["docker.io", "containerd", "runc"]);
    let at = directory.display();
    topology.host.sh("sysctl -qw net.ipv4.ip_forward=0");
    let script = format!(
        "export PATH={at}/usr/bin:{at}/usr/sbin:$PATH
        exec dockerd --data-root {at}/data --exec-root {at}/exec --pidfile {at}/pid \
        -H unix://{at}/socket --storage-driver vfs >{at}/log 2>&1"
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", &script]);
    let _dockerd = topology.host.with(|| Daemon::new(&mut command));
    let is_ready = format!("{at}/usr/bin/docker -H unix://{at}/socket version");
    sandbox.wait_for("docker", || topology.host.try_sh(&is_ready).status.success().then_some(()));
    let forwards = topology.host.sh("nft list chain ip filter FORWARD");
    assert!(forwards.contains("policy drop"), "{forwards}");
    guests_pass_when_it_is_told(&topology, (1, true), |remedy| drop(topology.host.sh(remedy)));
}

/// The real program, with a bus of its own.
fn firewalld_lets_guests_through_when_it_is_told(sandbox: &mut Sandbox) {
    let topology = Topology::new();
    let directory = unpack(sandbox, &["firewalld"]);
    let (at, bus) = (directory.display(), format!("unix:path={}/bus", directory.display()));
    let start = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).env("DBUS_SYSTEM_BUS_ADDRESS", &bus);
        topology.host.with(|| Daemon::new(&mut command))
    };
    let address = format!("--address={bus}");
    let _bus = start("dbus-daemon", &["--session", &address, "--nofork", "--nopidfile"]);
    let (own, defaults) = (format!("{at}/etc/firewalld"), format!("{at}/usr/lib/firewalld"));
    let settings = ["--system-config", &own, "--default-config", &defaults];
    let program = format!("{at}/usr/sbin/firewalld");
    let _firewalld = start(&program, &[&["--nofork", "--nopid"], &settings[..]].concat());
    let tell = |commands: &str| {
        topology.host.try_sh(&format!(
            "export DBUS_SYSTEM_BUS_ADDRESS={bus} PATH={at}/usr/bin:$PATH; {commands}"
        ))
    };
    sandbox.wait_for("firewalld", || tell("firewall-cmd --state").status.success().then_some(()));
    // It accepts what was translated, as published ports are.
    guests_pass_when_it_is_told(&topology, (1, false), |remedy| {
        let told = tell(remedy);
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    });
}

/// A firewall keeps packets of guests back until the remedy that Holm names: in so many chains, and
/// those of published ports too or not.
fn guests_pass_when_it_is_told(
    topology: &Topology,
    (chains, published_too): (usize, bool),
    tell: impl Fn(&str),
) {
    let guest = topology.guest(1, 1, &published(TCP_80));
    let _servers = [topology.outside.serve_tcp("[::]:7000"), guest.netns.serve_tcp("[::]:80")];
    assert!(guest.netns.is_cut_off_from("192.0.2.1:7000"));
    assert_eq!(topology.outside.is_cut_off_from("192.0.2.2:8080"), published_too);
    let blockers = topology.host.with(|| net::blockers(Hook::Forward));
    assert_eq!(blockers.len(), chains, "{blockers:?}");
    assert!(blockers.iter().all(|other| other.remedy() == blockers[0].remedy()));
    tell(&blockers[0].remedy());
    assert_eq!(topology.host.with(|| net::blockers(Hook::Forward)), []);
    for to in ["192.0.2.1:7000", "[2001:db8::1]:7000"] {
        assert!(guest.netns.reaches(to).is_some(), "{to}");
    }
    for at in ["192.0.2.2:8080", "[2001:db8::2]:8080"] {
        assert!(topology.outside.reaches(at).is_some(), "{at}");
    }
}

fn forwarding_keeps_advertised_routes(_: &mut Sandbox) {
    let topology = Topology::new();
    assert_eq!(topology.host.sh("cat /proc/sys/net/ipv6/conf/up0/accept_ra").trim(), "1");
    let _guest = topology.guest(1, 1, &Net::default());
    let settings = topology.host.sh("cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding /proc/sys/net/ipv6/conf/up0/accept_ra");
    assert_eq!(settings.split_whitespace().collect::<Vec<_>>(), ["1", "1", "2"]);
}

/// Guest root, with the host's programs: most guests have none of them.
fn a_guest_has_rules_routes_and_interfaces_of_its_own(sandbox: &mut Sandbox) {
    let topology = Topology::new();
    let holm = |args: &[&str]| topology.host.with(|| sandbox.holm(args));
    holm(&["launch", "own", "--base", "busybox", "--", "sleep", "1000"]).ok();
    let pid = holm(&["status", "own", "--json"]).ok().json()["init_pid"].clone();
    let inside =
        |script: &str| topology.host.try_sh(&format!("nsenter -t {pid} -U -n -- sh -c '{script}'"));
    let works = |script: &str| {
        let output = inside(script);
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let _servers = ["[::]:81", "[::]:82"].map(|at| topology.outside.serve_tcp(at));
    let get = |port: u16| {
        let ask = format!("nc -w 5 192.0.2.1 {port} </dev/null");
        holm(&["exec", "own", "--", "sh", "-c", &ask]).stdout
    };
    assert!(get(81).contains("192.0.2.2") && get(82).contains("192.0.2.2"));
    let before = (ruleset(&topology), topology.host.sh("ip route; ip -br link"));
    works("nft add table inet own; nft add chain inet own out \\{ type filter hook output priority 0\\; \\}
           nft add rule inet own out tcp dport 81 counter reject");
    assert_eq!(get(81), "", "its own rule refuses it");
    assert!(get(82).contains("192.0.2.2"));
    let rules = works("nft list table inet own");
    assert!(rules.contains("counter packets") && !rules.contains("packets 0"), "{rules}");
    works("ip route add blackhole 192.0.2.1/32");
    assert_eq!(get(82), "", "its own route leads nowhere");
    works("ip route del blackhole 192.0.2.1/32");
    works(
        "ip link add d0 type veth peer name d1; ip addr add 198.51.100.1/24 dev d0; ip link set d0 up",
    );
    let wireguard = "ip link add wg0 type wireguard";
    if topology.outside.try_sh(wireguard).status.success() {
        works(wireguard);
    }
    assert!(get(82).contains("192.0.2.2"));
    assert_eq!((ruleset(&topology), topology.host.sh("ip route; ip -br link")), before);
    holm(&["rm", "--force", "own"]).ok();
}
