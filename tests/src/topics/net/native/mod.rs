//! Guests with addresses of their own in the host's network namespace.

pub mod arrival;
pub mod changes;
pub mod closed;
pub mod passing;
pub mod ports;
pub mod sharing;
pub mod unix;

use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::topology::{PATIENCE, SILENCE, Topology};
use crate::command::Outcome;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(two_guests_serve_the_same_ports).bases(&["busybox"]),
    test!(what_is_others_is_refused).bases(&["busybox"]),
    test!(nothing_leads_out_of_a_native_guest).bases(&["busybox"]),
    test!(a_killed_start_is_repaired).bases(&["busybox"]),
    test!(addresses_are_the_hosts_and_one_guests).bases(&["busybox"]),
    test!(kinds_and_options_of_sockets).bases(&["busybox"]),
    test!(ports_that_are_not_served_are_nobodys).bases(&["busybox"]),
    test!(sockets_of_others_are_hidden).bases(&["busybox"]),
];

const ONE: &str = "192.0.2.10,192.0.2.11,2001:db8::10";
const TWO: &str = "192.0.2.20,2001:db8::20";

/// A host with the addresses of both guests, in a network namespace of its own.
struct Host<'a> {
    topology: Topology,
    sandbox: &'a Sandbox,
    probe: PathBuf,
}

impl<'a> Host<'a> {
    fn new(sandbox: &'a Sandbox) -> Self {
        let topology = Topology::new();
        for address in ONE.split(',').chain(TWO.split(',')).chain(["192.0.2.30"]) {
            // Not preferred, or the host answered from there.
            let length = if address.contains(':') { "128 nodad preferred_lft 0" } else { "32" };
            topology.host.sh(&format!("ip addr add {address}/{length} dev up0"));
        }
        Self { topology, sandbox, probe: sandbox.probe_directory() }
    }

    fn holm(&self, args: &[&str]) -> Outcome {
        self.topology.host.with(|| self.sandbox.holm(args))
    }

    fn launch(&self, name: &str, addresses: &str, command: &[&str]) -> Outcome {
        self.launch_with(&[], name, addresses, command)
    }

    /// Launches it with more `options`.
    fn launch_with(
        &self,
        options: &[&str],
        name: &str,
        addresses: &str,
        command: &[&str],
    ) -> Outcome {
        let mode = ["--set", "net.mode=native", "--set"];
        let address = format!("net.address={addresses}");
        let mount = format!("mounts+={}:/probe:ro", self.probe.display());
        let head = ["launch", name, "--base", "busybox"];
        let settings = [&mode[..], &[&address, "--set", &mount, "--"]].concat();
        self.holm(&[&head[..], options, &settings, command].concat())
    }

    /// Starts the guest with its servers, and waits until they serve.
    fn serve(&self, name: &str, addresses: &str) {
        self.launch(name, addresses, &["/probe/holm-probe", "serve", name]).ok();
        self.wait_for_servers(name);
    }

    fn wait_for_servers(&self, name: &str) {
        let log = self.sandbox.wait_for("the servers", || {
            let log = self.holm(&["logs", name]).ok().stdout;
            (log.contains("serving") || log.contains("HOLE")).then_some(log)
        });
        assert!(!log.contains("HOLE"), "{log}");
    }

    /// Kills a command of holm when it has done `step`.
    fn kill_at(&self, step: &str, args: &[&str]) {
        self.topology.kill_at(self.sandbox, step, args);
    }

    /// Waits until a guest is seen to have ended.
    fn wait_for_end(&self, name: &str) {
        self.sandbox.wait_for("its end", || {
            let found = self.holm(&["status", name, "--json"]).ok().json();
            (found["state"] == "stopped").then_some(())
        });
    }

    /// What a server answers to a guest.
    fn ask(&self, name: &str, protocol: &str, to: &str) -> String {
        let asked = self.holm(&["exec", name, "--", "/probe/holm-probe", "ask", protocol, to]);
        asked.ok().stdout.trim().to_owned()
    }

    /// Runs the probe as a program of the host or outside.
    fn probe_from(&self, outside: bool, args: &[&str]) -> Outcome {
        let netns = if outside { &self.topology.outside } else { &self.topology.host };
        let mut probe = Command::new(self.probe.join("holm-probe"));
        netns.with(|| self.sandbox.run(probe.args(args)))
    }

    /// What a server answers to a program of the host or outside.
    fn ask_from(&self, outside: bool, protocol: &str, to: &str) -> String {
        self.probe_from(outside, &["ask", protocol, to]).ok().stdout.trim().to_owned()
    }
}

fn two_guests_serve_the_same_ports(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.serve("one", ONE);
    host.serve("two", TWO);
    for (name, own, own6) in
        [("one", "192.0.2.10", "2001:db8::10"), ("two", "192.0.2.20", "2001:db8::20")]
    {
        for port in [80, 81, 25, 22] {
            let answer = format!("{name} asked by 127.0.0.1 at 127.0.0.1");
            assert_eq!(host.ask(name, "tcp", &format!("127.0.0.1:{port}")), answer, "{port}");
        }
        for port in [81, 82, 26] {
            let answer = format!("{name} asked by ::1 at ::1");
            assert_eq!(host.ask(name, "tcp", &format!("[::1]:{port}")), answer, "{port}");
        }
        let resolver = format!("{name} asked by 127.0.0.1 at 127.0.0.53");
        assert_eq!(host.ask(name, "tcp", "127.0.0.53:53"), resolver);
        // As on every host, a client that names its own address is seen with it.
        assert_eq!(
            host.ask(name, "tcp", &format!("{own}:80")),
            format!("{name} asked by {own} at {own}")
        );
        let port = host.ask(name, "tcp", "127.0.0.1:99");
        let unbound = host.ask(name, "tcp", &format!("127.0.0.1:{port}"));
        assert_eq!(unbound, format!("{name} asked by 127.0.0.1 at 127.0.0.1"));
        for to in ["127.0.0.1:53", "127.0.0.53:53", "127.0.0.1:54"] {
            assert_eq!(host.ask(name, "udp", to), format!("{name} asked by 127.0.0.1"), "{to}");
            // Bound to "any" before it was connected: it has the guest's first address by then.
            let connected = host.ask(name, "udp-connected", to);
            assert_eq!(connected, format!("{name} asked by {own}"), "{to}");
        }
        assert_eq!(host.ask(name, "udp", "[::1]:54"), format!("{name} asked by ::1"));
        let connected = host.ask(name, "udp-connected", "[::1]:54");
        assert_eq!(connected, format!("{name} asked by {own6}"));
    }
    each_is_reached_at_its_addresses(&host);
    loopback_is_its_own(&host);
    sandbox.holm(&["rm", "--force", "one", "two"]).ok();
}

fn each_is_reached_at_its_addresses(host: &Host<'_>) {
    // From the other guest, by its first address.
    for (to, from) in [("192.0.2.10:80", "192.0.2.20"), ("192.0.2.11:81", "192.0.2.20")] {
        let at = to.split(':').next().unwrap();
        assert_eq!(host.ask("two", "tcp", to), format!("one asked by {from} at {at}"));
    }
    assert_eq!(
        host.ask("one", "tcp", "[2001:db8::20]:81"),
        "two asked by 2001:db8::10 at 2001:db8::20"
    );
    assert_eq!(host.ask("two", "udp", "192.0.2.10:53"), "one asked by 192.0.2.20");
    // From outside: all addresses of all servers on "any", and none of those on loopback.
    for (name, at) in [
        ("one", "192.0.2.10"),
        ("one", "192.0.2.11"),
        ("one", "2001:db8::10"),
        ("two", "192.0.2.20"),
        ("two", "2001:db8::20"),
    ] {
        let address: IpAddr = at.parse().unwrap();
        let to = |port: u16| std::net::SocketAddr::new(address, port).to_string();
        let client = if address.is_ipv4() { "192.0.2.1" } else { "2001:db8::1" };
        let answer = format!("{name} asked by {client} at {at}");
        assert_eq!(host.ask_from(true, "tcp", &to(81)), answer);
        let (v4, v6) = if address.is_ipv4() { (80, 82) } else { (82, 80) };
        assert_eq!(host.ask_from(true, "tcp", &to(v4)), answer);
        let answer = format!("{name} asked by {client}");
        for protocol in ["udp", "udp-connected"] {
            assert_eq!(host.ask_from(true, protocol, &to(54)), answer, "{protocol} {at}");
            if address.is_ipv4() {
                assert_eq!(host.ask_from(true, protocol, &to(53)), answer, "{protocol} {at}");
            }
        }
        for refused in [v6, 25, 26] {
            assert_eq!(host.ask_from(true, "tcp", &to(refused)), "ConnectionRefused", "{at}");
        }
    }
    // Programs of the host reach them, and neither their loopback nor what they say is the host's.
    assert!(host.ask_from(false, "tcp", "192.0.2.10:80").starts_with("one asked by 192.0.2."));
    assert_eq!(host.ask_from(false, "tcp", "127.0.0.1:80"), "ConnectionRefused");
    assert_eq!(host.ask_from(false, "tcp", "192.0.2.2:80"), "ConnectionRefused");
}

/// What a guest's `::1` is on the host, no other guest reaches.
fn loopback_is_its_own(host: &Host<'_>) {
    let shown = host.topology.host.sh("ip -o -6 addr show dev lo");
    let of_guests: Vec<_> =
        shown.split([' ', '/']).filter(|word| word.starts_with("fd00:686f:6c6d:")).collect();
    assert_eq!(of_guests.len(), 2, "{shown}");
    for (address, protocol, port) in
        [(of_guests[0], "tcp", 26), (of_guests[1], "tcp", 81), (of_guests[0], "udp", 54)]
    {
        let to = format!("[{address}]:{port}");
        // For the one whose it is, it is another way to say ::1, by which it then names it.
        let answers = ["one", "two"].map(|name| host.ask(name, protocol, &to));
        let count = |text| answers.iter().filter(|answer| answer.contains(text)).count();
        assert_eq!((count("[::1]"), count("asked by")), (1, 0), "{to}: {answers:?}");
    }
}

/// Outside: pings from the guest's own addresses, and from those of others.
const COUNT_PINGS: &str = "nft -f - << EOF
table inet count {
chain in {
  type filter hook input priority 0;
  ip saddr 192.0.2.10 icmp type echo-request counter
  ip6 saddr 2001:db8::10 icmpv6 type echo-request counter
  ip saddr { 192.0.2.20, 192.0.2.2 } icmp type echo-request counter
  ip6 saddr { 2001:db8::20, 2001:db8::2 } icmpv6 type echo-request counter
}
}
EOF";

/// Nor can it change the host's stack, in which it is.
fn nothing_leads_out_of_a_native_guest(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.launch("one", ONE, &["sleep", "100000"]).ok();
    for args in [&["escape"][..], &["caps"], &["seccomp"], &["seccomp", "--32"], &["dmesg"]] {
        host.holm(&[&["exec", "one", "--", "/probe/holm-probe"], args].concat()).ok();
    }
    let look = "ip addr; ip link; ip route; ip -6 route; ip neigh show nud permanent; tc qdisc; \
                nft list tables; grep -rs . /proc/sys/net/ipv4/conf /proc/sys/net/ipv6/conf \
                /proc/sys/net/ipv4/ip_forward || :";
    let before = host.topology.host.sh(look);
    let pid = host.holm(&["status", "one", "--json"]).ok().json()["init_pid"].clone();
    for change in [
        "ip addr add 192.0.2.66/24 dev up0",
        "ip link set up0 down",
        "ip link add d0 type veth",
        "ip route add 10.9.0.0/16 dev up0",
        "ip neigh add 192.0.2.77 lladdr 02:00:00:00:00:01 dev up0 nud permanent",
        "nft add table inet own",
        "tc qdisc add dev up0 root pfifo",
    ] {
        // With the host's programs, and with all capabilities that guest root may have.
        let tried = host.topology.host.try_sh(&format!("nsenter -t {pid} -U -- {change}"));
        let why = String::from_utf8_lossy(&tried.stderr);
        assert!(!tried.status.success() && why.contains("not permitted"), "{change}: {why}");
    }
    for change in ["echo 1 > /proc/sys/net/ipv4/ip_forward", "echo 1 > /sys/class/net/up0/threaded"]
    {
        let tried = host.holm(&["exec", "one", "--", "sh", "-c", change]);
        assert!(tried.code() == 1 && tried.stderr.contains("can't create"), "{change}: {tried}");
    }
    assert_eq!(host.topology.host.sh(look), before);
    sandbox.holm(&["rm", "--force", "one"]).ok();
}

fn what_is_others_is_refused(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.launch("one", ONE, &["sleep", "100000"]).ok();
    host.launch("two", TWO, &["sleep", "100000"]).ok();
    host.topology.host.sh("sysctl -qw net.ipv4.ping_group_range='0 2147483647'");
    let _servers = ["0.0.0.0:7000", "[::1]:7001"].map(|at| host.topology.host.serve_tcp(at));
    let outside = &host.topology.outside;
    outside.sh(COUNT_PINGS);
    for (own, outside, others) in [
        ("192.0.2.10", "192.0.2.1", ["192.0.2.20", "192.0.2.2", "2001:db8::20"]),
        ("2001:db8::10", "2001:db8::1", ["2001:db8::20", "2001:db8::2", "192.0.2.30"]),
    ] {
        let probe = ["exec", "one", "--", "/probe/holm-probe", "confined", own, outside];
        host.holm(&[&probe[..], &others].concat()).ok();
    }
    let counted = sandbox.wait_for("pings from its own addresses", || {
        let counted = outside.sh("nft list chain inet count in");
        let mut own =
            counted.lines().filter(|line| line.contains("::10 ") || line.contains(".10 "));
        own.all(|line| !line.contains("packets 0 ")).then_some(counted)
    });
    let others: Vec<_> = counted.lines().filter(|line| line.contains("saddr {")).collect();
    assert_eq!(others.len(), 2, "{counted}");
    assert!(others.iter().all(|line| line.contains("packets 0 ")), "{counted}");
    // Services of the host on its loopback, and those on "any" by loopback or a guest's address.
    for to in ["127.0.0.1:7000", "[::1]:7001", "192.0.2.10:7000", "192.0.2.20:7000"] {
        assert_eq!(host.ask("one", "tcp", to), "ConnectionRefused", "{to}");
    }
    assert_eq!(host.ask_from(true, "tcp", "192.0.2.10:7000"), "ConnectionRefused");
    // In a network namespace of its own, as of a container, a guest has what addresses it wants.
    let nested = "ip link set lo up; ip addr add 198.51.100.7/32 dev lo; echo served | nc -l -p 80 & \
                  until nc 198.51.100.7 80 < /dev/null 2> /dev/null; do :; done";
    let served = host.holm(&["exec", "one", "--", "unshare", "-n", "sh", "-c", nested]);
    assert_eq!(served.ok().stdout, "served\n");
    // Ports below 1024 are guest root's.
    let user = ["exec", "--user", "1000", "one", "--", "nc", "-l", "-p", "81"];
    assert_ne!(host.holm(&user).code(), 0);
    sandbox.holm(&["rm", "--force", "one", "two"]).ok();
}

/// Where the programs of a sandbox's root are while a native guest runs.
fn programs(sandbox: &Sandbox) -> String {
    format!("/run/holm/{}/bpf", sandbox.instance().expect("an instance"))
}

fn a_killed_start_is_repaired(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.launch("one", ONE, &["sleep", "100000"]).ok();
    host.holm(&["kill", "one"]).ok();
    assert!(!Path::new(&programs(sandbox)).exists(), "programs stay without guests");
    for step in ["record", "native-programs", "net-admit", "pivot"] {
        host.kill_at(step, &["start", "one"]);
        host.wait_for_end("one");
        host.holm(&["start", "one"]).ok();
        host.holm(&["kill", "one"]).ok();
        assert!(!Path::new(&programs(sandbox)).exists(), "programs stay after {step}");
        let left = host.topology.host.sh("ip -o -6 addr show dev lo");
        assert_eq!(left.lines().count(), 1, "{step}: {left}");
    }
    sandbox.holm(&["rm", "one"]).ok();
}

fn addresses_are_the_hosts_and_one_guests(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.launch("none", "192.0.2.99", &["sleep", "100000"])
        .refused(&["this host has no address 192.0.2.99", "ip address add"]);
    for (bad, why) in [
        ("127.0.0.1", "it is the loopback of the host"),
        ("127.8.1.1", "it is the loopback of the host or of a guest"),
        ("::1", "it is the loopback of the host"),
        ("fe80::1", "it is valid on one link only"),
        ("::ffff:192.0.2.10", "it is an IPv4 address in IPv6 notation"),
    ] {
        host.launch("none", bad, &["sleep", "100000"]).refused(&[bad, why]);
    }
    host.launch("one", ONE, &["sleep", "100000"]).ok();
    host.launch("same", "192.0.2.11", &["sleep", "100000"])
        .refused(&["the address 192.0.2.11 is in use on this host already"]);
    let other = Sandbox::new(&sandbox.options, &["busybox"]).expect("another root");
    let launch = ["launch", "same", "--base", "busybox", "--net", "native", "--set"];
    let launch = [&launch[..], &["net.address=192.0.2.11", "--", "sleep", "100000"]].concat();
    let launch = || host.topology.host.with(|| other.holm(&launch));
    let refused = launch();
    host.holm(&["kill", "one"]).ok();
    let launched = launch();
    let start = host.holm(&["start", "one"]);
    host.topology.host.with(|| other.holm(&["rm", "--force", "same"])).ok();
    // Before anything is expected of them: a root that stays would be in the way of other tests.
    other.clean_up(false).expect("nothing is left of the other root");
    refused.refused(&["192.0.2.11 is in use"]);
    launched.ok();
    start.refused(&["192.0.2.11 is in use"]);
    host.launch("same", "192.0.2.11", &["sleep", "100000"]).ok();
    host.holm(&["start", "one"]).refused(&["192.0.2.11 is in use"]);
    sandbox.holm(&["rm", "--force", "one", "same"]).ok();
}

fn kinds_and_options_of_sockets(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.launch("one", ONE, &["sleep", "100000"]).ok();
    host.launch("two", TWO, &["sleep", "100000"]).ok();
    let groups = ["239.1.2.3", "ff15::123"].map(|group| host.topology.host.join_group(group, 7009));
    for ([own, second, other], group) in [
        ["192.0.2.10", "192.0.2.11", "192.0.2.20"],
        ["2001:db8::10", "2001:db8::10", "2001:db8::20"],
    ]
    .into_iter()
    .zip(groups)
    {
        let probe = ["exec", "one", "--", "/probe/holm-probe", "sockets", own, second, other];
        host.holm(&probe).ok();
        // Else it would show nothing that no socket of the guest hears it.
        group.recv_from(&mut [0; 8]).expect("what the guest sends to a group the host hears");
    }
    // One that was never bound is answered from outside, too.
    for (server, own) in [("192.0.2.1:7005", "192.0.2.10"), ("[2001:db8::1]:7005", "2001:db8::10")]
    {
        let _server = host.topology.outside.serve_udp(server);
        assert_eq!(host.ask("one", "udp-unbound", server), own);
    }
    sandbox.holm(&["rm", "--force", "one", "two"]).ok();
}

/// All addresses of the family of `to`.
fn any_like(to: &str) -> IpAddr {
    let any = if to.starts_with('[') { "::" } else { "0.0.0.0" };
    any.parse().unwrap()
}

/// Whether a datagram is refused with an answer, of which the kernel sends one each second.
fn refused(to: &str) -> bool {
    let socket = UdpSocket::bind((any_like(to), 0)).unwrap();
    socket.connect(to).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let ask = || {
        let _ = socket.send(b"?");
        socket.recv(&mut [0; 8]).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    };
    (0..PATIENCE.as_secs()).any(|_| ask())
}

/// A service of the host on all addresses is not at those of a guest.
fn ports_that_are_not_served_are_nobodys(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    host.launch("one", ONE, &["sleep", "100000"]).ok();
    let _servers = ["0.0.0.0:7002", "[::]:7003"].map(|at| host.topology.host.serve_udp(at));
    let outside = &host.topology.outside;
    let asked = |to: &str, patience| outside.ask_udp(to, patience).is_some();
    for (own, others) in [
        ("192.0.2.2:7002", ["192.0.2.10:7002", "192.0.2.11:7002"]),
        ("[2001:db8::2]:7003", ["[2001:db8::10]:7003", "192.0.2.10:7003"]),
    ] {
        assert!(asked(own, PATIENCE), "the host's own is asked at {own}");
        for to in others {
            assert!(!asked(to, SILENCE), "the host answers at {to}");
            let refused = outside.with(|| refused(to));
            assert!(refused, "{to} refuses nothing");
        }
    }
    assert_eq!(host.ask("one", "udp", "192.0.2.11:7002"), "WouldBlock");
    sandbox.holm(&["rm", "--force", "one"]).ok();
}

fn sockets_of_others_are_hidden(sandbox: &mut Sandbox) {
    let host = Host::new(sandbox);
    let modes = || host.topology.host.sh("cd /proc/net; stat -c %a tcp udp6 unix netlink");
    let (everybodys, roots) = ("444\n".repeat(4), "440\n".repeat(4));
    assert_eq!(modes(), everybodys);
    let mount = format!("{}:/probe:ro", host.probe.display());
    let base = ["--base", "busybox", "--net", "native", "-v", &mount];
    let hide = ["--set", "net.hide-sockets=true", "--"];
    let run = |more: &[&str]| host.holm(&[&["run"], &base[..], more].concat());
    run(&[&hide[..], &["/probe/holm-probe", "hidden"]].concat()).ok();
    assert_eq!(modes(), everybodys);
    // Without it they are seen, by everybody.
    assert_ne!(run(&["--", "/probe/holm-probe", "hidden"]).code(), 0);
    for name in ["one", "two"] {
        let launch = ["launch", name];
        host.holm(&[&launch[..], &base, &hide, &["sleep", "100000"]].concat()).ok();
        host.holm(&["exec", name, "--", "/probe/holm-probe", "hidden"]).ok();
        assert_eq!(modes(), roots);
    }
    host.holm(&["kill", "one"]).ok();
    assert_eq!(modes(), roots);
    for step in ["record", "native-hidden", "net-admit"] {
        host.kill_at(step, &["start", "one"]);
    }
    host.holm(&["kill", "two"]).ok();
    host.holm(&["rm", "--force", "one", "two"]).ok();
    assert_eq!(modes(), everybodys);
    assert!(!Path::new("/run/holm/hidden").exists(), "the note of what is hidden stays");
}
