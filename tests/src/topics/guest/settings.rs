//! Settings without a topic of their own, each seen to take effect.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use crate::guest::{ended, exec, launch_idle, remove, status};
use crate::host::free_port;
use crate::sandbox::{Sandbox, skip};
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(resource_limits_hold).bases(&["busybox"]),
    test!(init_is_asked_by_its_stop_signal).bases(&["busybox"]),
    test!(a_protected_guest_is_not_removed).bases(&["busybox"]),
    test!(nesting_gives_ids_for_containers).bases(&["debian13"]),
    test!(a_guest_on_the_hosts_network_cannot_change_it).bases(&["busybox"]),
    test!(a_guest_has_the_addresses_it_is_given).bases(&["busybox"]),
    test!(userfaultfd_needs_its_key).bases(&["busybox"]),
    test!(packet_rings_need_their_key).bases(&["busybox"]),
    test!(packet_rings_of_32_bit_programs).bases(&["busybox"]),
];

fn resource_limits_hold(sandbox: &mut Sandbox) {
    let settings =
        ["rlimits.nofile=100:200", "rlimits.fsize=1M", "rlimits.core=0", "memory.lock=64K"];
    let args: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    launch_idle(sandbox, "box", &args);
    let limits = "grep -e 'open files' -e 'file size' -e core -e locked";
    let expected = [
        ["Max file size", "1048576", "1048576"],
        ["Max core file size", "0", "0"],
        ["Max open files", "100", "200"],
        ["Max locked memory", "65536", "65536"],
    ];
    // Init has them, and what exec brings.
    for process in ["1", "self"] {
        let seen = exec(sandbox, "box", &format!("{limits} /proc/{process}/limits")).ok();
        for (line, [name, soft, hard]) in seen.stdout.lines().zip(expected) {
            let numbers: Vec<&str> =
                line.strip_prefix(name).unwrap_or_default().split_whitespace().take(2).collect();
            assert_eq!(numbers, [soft, hard], "{seen}");
        }
        assert_eq!(seen.stdout.lines().count(), expected.len(), "{seen}");
    }
    let raise = "ulimit -n 200 && ulimit -n 201 && echo raised";
    for user in ["0", "1000"] {
        let outcome = sandbox.holm(&["exec", "-u", user, "box", "--", "sh", "-c", raise]);
        assert_eq!(outcome.stdout, "", "nobody inside raises a hard limit\n{outcome}");
    }
    let write = "dd if=/dev/zero of=/tmp/x bs=64k count=32 2>/dev/null; stat -c %s /tmp/x";
    assert_eq!(exec(sandbox, "box", write).ok().stdout, "1048576\n");
    remove(sandbox, "box");

    let create = ["create", "box", "--base", "busybox", "--set"];
    for (setting, message) in [
        ("rlimits.nofiles=5", ["nofiles", "nofile"]),
        ("rlimits.nofile=9:5", ["rlimits.nofile", "9"]),
    ] {
        sandbox.holm(&[&create[..], &[setting]].concat()).rejected(&message);
    }
    let both = ["--set", "memory.lock=1M", "--set", "rlimits.memlock=1M"];
    sandbox.holm(&[&create[..4], &both].concat()).rejected(&["memory.lock", "rlimits.memlock"]);
}

fn init_is_asked_by_its_stop_signal(sandbox: &mut Sandbox) {
    let script = "for s in TERM USR1 USR2; do trap \"echo printed $s; exit 3\" $s; done; \
                  echo up; while :; do sleep 0.1; done";
    let args =
        ["launch", "box", "--base", "busybox", "--net", "none", "--set", "stop.signal=SIGUSR1"];
    sandbox.holm(&[&args[..], &["--", "sh", "-c", script]].concat()).ok();
    let stop = |expected: &str| {
        sandbox.wait_for("its handlers are there", || {
            sandbox.holm(&["logs", "-n1", "box"]).stdout.starts_with("up").then_some(())
        });
        let stopped = sandbox.holm(&["stop", "box", "--json"]).ok().json();
        assert_eq!(stopped["killed"], false, "{stopped}");
        let log = sandbox.holm(&["logs", "-n1", "box"]).ok().stdout;
        assert_eq!(log.trim_end(), expected);
        assert_eq!(ended(&status(sandbox, "box")), "exited 3");
    };
    stop("printed USR1");
    sandbox.holm(&["set", "box", "stop.signal=12"]).ok();
    sandbox.holm(&["start", "box"]).ok();
    stop("printed USR2");
    sandbox.holm(&["unset", "box", "stop.signal"]).ok();
    sandbox.holm(&["start", "box"]).ok();
    stop("printed TERM");
    sandbox.holm(&["rm", "box"]).ok();
}

fn a_protected_guest_is_not_removed(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &["--set", "protect=true"]);
    for args in [&["rm", "box"][..], &["rm", "--force", "box"], &["rm", "--force", "--all"]] {
        sandbox.holm(args).refused(&["box", "protect=false"]);
        assert_eq!(exec(sandbox, "box", "echo here").ok().stdout, "here\n", "{args:?}");
    }
    sandbox.holm(&["stop", "box"]).ok();
    sandbox.holm(&["rm", "box"]).refused(&["box", "protect=false"]);
    sandbox.holm(&["set", "box", "protect=false"]).ok();
    sandbox.holm(&["rm", "box"]).ok();
}

/// A user namespace with the mounts that Debian's container tools make.
const CONTAINER: &str = "unshare --user --map-users 0:100000:65536 --map-groups 0:100000:65536 --setuid 0 --setgid 0 \
    --mount --pid --fork --mount-proc --net --ipc --uts --cgroup sh -ec";

fn nesting_gives_ids_for_containers(sandbox: &mut Sandbox) {
    let launch = |name: &str, nesting: &str| {
        let args = ["launch", name, "--base", "debian13", "--net", "none", "--set", nesting, "--"];
        sandbox.holm(&[&args[..], &["sleep", "100000"]].concat()).ok();
    };
    launch("flat", "security.nesting=false");
    launch("nest", "security.nesting=true");
    launch("next", "security.nesting=false");
    let ids = |name: &str| {
        let ids = status(sandbox, name)["id_range"].clone();
        (ids["first"].as_u64().expect("a base"), ids["count"].as_u64().expect("a count"))
    };
    let mut ranges = ["flat", "nest", "next"].map(ids);
    assert_eq!(ranges[1].1, 1 << 18, "{ranges:?}");
    let map = exec(sandbox, "nest", "cat /proc/self/uid_map /proc/self/gid_map").ok().stdout;
    for line in map.lines() {
        let numbers: Vec<u64> =
            line.split_whitespace().filter_map(|text| text.parse().ok()).collect();
        assert_eq!(numbers, [0, ranges[1].0, 1 << 18], "{map}");
    }
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0), "overlap: {ranges:?}");

    let inside = "cat /proc/self/uid_map; ls -d /proc/[0-9]* | wc -l; touch /tmp/x; chown 65535:65535 /tmp/x; \
        mount -t tmpfs tmpfs /mnt; cd /mnt; mkdir low up work all; echo outer >low/name; hostname inner; hostname; \
        mount -t overlay o -o lowerdir=low,upperdir=up,workdir=work all; \
        echo inner >all/name; cat up/name; ip link set lo up; mount -t sysfs s /sys; ls /sys/class/net";
    let container = format!("{CONTAINER} '{inside}'");
    let outcome = exec(sandbox, "nest", &container).ok();
    let lines: Vec<&str> = outcome.stdout.lines().map(str::trim).collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["0", "100000", "65536"],
        "{outcome}"
    );
    // The shell, ls and wc.
    assert!(lines[1].parse::<u32>().is_ok_and(|count| count < 6), "{outcome}");
    assert_eq!(lines[2..], ["inner", "inner", "lo"], "{outcome}");
    assert_eq!(
        exec(sandbox, "nest", "stat -c %u:%g /tmp/x; hostname").ok().stdout,
        "165535:165535\nnest\n"
    );
    assert_ne!(exec(sandbox, "flat", &container).code(), 0, "a guest without has no such ids");
    for name in ["flat", "nest", "next"] {
        remove(sandbox, name);
    }
}

/// What a web server at `address` answers.
fn get(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(10)).ok()?;
    stream.set_read_timeout(Some(Duration::from_mins(1))).ok()?;
    stream.write_all(b"GET /index.html HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.contains("It works.").then_some(answer)
}

fn a_guest_on_the_hosts_network_cannot_change_it(sandbox: &mut Sandbox) {
    let port = free_port();
    let listen = format!("127.0.0.1:{port}");
    let args = ["launch", "box", "--base", "busybox", "--net", "host", "--"];
    let server = ["httpd", "-f", "-p", &listen, "-h", "/var/www"];
    sandbox.holm(&[&args[..], &server].concat()).ok();
    sandbox.wait_for("it serves on the host's own loopback", || get(([127, 0, 0, 1], port).into()));
    let own = std::fs::read_link("/proc/self/ns/net").expect("a namespace");
    let seen = exec(sandbox, "box", "readlink /proc/self/ns/net; readlink /proc/1/ns/net").ok();
    assert_eq!(seen.stdout, format!("{0}\n{0}\n", own.display()));
    let resolver = exec(sandbox, "box", "cat /etc/resolv.conf").ok();
    assert!(
        resolver.stdout.contains("nameserver") || resolver.stdout.starts_with('#'),
        "{resolver}"
    );
    // Guest root uses the host's network stack but cannot change it.
    for script in [
        "ip link set lo mtu 60000",
        "ip address add 203.0.113.9/32 dev lo",
        "ip route add 203.0.113.0/24 dev lo",
        "ip link add dummy7 type dummy",
        "echo 1 >/proc/sys/net/ipv4/ip_forward",
    ] {
        assert_ne!(exec(sandbox, "box", script).code(), 0, "{script}");
    }
    remove(sandbox, "box");
    assert!(get(([127, 0, 0, 1], port).into()).is_none(), "it has ended");
    for setting in ["net.publish=8080:80", "net.address=198.18.0.7"] {
        let args = ["create", "box", "--base", "busybox", "--net", "host", "--set", setting];
        sandbox.holm(&args).rejected(&[&setting[..11], "net.mode"]);
    }
}

/// Whether packets from the host to `address` go to a guest of this root. Asked before anything is
/// sent: they would leave the machine otherwise.
fn leads_to_a_guest(sandbox: &mut Sandbox, address: &str) -> bool {
    let interface = format!("dev h{}-", sandbox.instance().expect("a number"));
    let route = sandbox.run(Command::new("ip").args(["route", "get", address]));
    route.stdout.contains(&interface)
}

/// Addresses for tests of networks (RFC 2544, RFC 3849), this process's own: tests of another may
/// run beside.
fn a_guest_has_the_addresses_it_is_given(sandbox: &mut Sandbox) {
    let own = std::process::id() & 0xffff;
    let v4 = |half: u32| Ipv4Addr::from(0xc612_0000 + (half << 16) + own).to_string();
    let (first, second, v6) = (v4(0), v4(1), format!("2001:db8::{own:x}"));
    let setting = format!("net.address={first},{v6}");
    let args = ["launch", "box", "--base", "busybox", "--set", &setting, "--"];
    let server = ["httpd", "-f", "-p", "80", "-h", "/var/www"];
    sandbox.holm(&[&args[..], &server].concat()).ok();
    for address in [&first, &v6] {
        if address == &v6 && !std::path::Path::new("/proc/net/if_inet6").exists() {
            continue;
        }
        exec(sandbox, "box", &format!("ip address show eth0 | grep -w {address}")).ok();
        assert!(leads_to_a_guest(sandbox, address));
        let server = SocketAddr::new(address.parse().expect("an address"), 80);
        sandbox.wait_for("it answers", || get(server));
    }
    let listed = sandbox.holm(&["ls"]).ok();
    assert!(listed.stdout.contains(&first), "{listed}");

    // Also in guest.toml, and back to the pool.
    sandbox.holm(&["unset", "box", "net.address"]).ok();
    let path = sandbox.root().join("guests/box/guest.toml");
    let text = std::fs::read_to_string(&path).expect("settings");
    std::fs::write(&path, format!("net.address = [\"{second}\"]\n{text}")).expect("settings");
    sandbox.holm(&["restart", "box"]).ok();
    assert!(leads_to_a_guest(sandbox, &second) && !leads_to_a_guest(sandbox, &first));
    let server = SocketAddr::new(second.parse().expect("an address"), 80);
    sandbox.wait_for("it answers there", || get(server));
    sandbox.holm(&["unset", "box", "net.address"]).ok();
    sandbox.holm(&["restart", "box"]).ok();
    exec(sandbox, "box", "ip address show eth0 | grep 'inet 10\\.'").ok();
    assert!(!leads_to_a_guest(sandbox, &second));
    remove(sandbox, "box");
    for address in ["198.18.0.7,198.18.0.8", "127.0.0.1", "198.18.0"] {
        let setting = format!("net.address={address}");
        let args = ["create", "box", "--base", "busybox", "--set", &setting];
        sandbox.holm(&args).rejected(&["net.address"]);
    }
}

/// What the system call filter of a guest with this setting lets through, as the probe says it.
fn holes(sandbox: &Sandbox, setting: &str) -> Vec<String> {
    let mount = format!("{}:/probe:ro", sandbox.probe_directory().display());
    let args = ["run", "--base", "busybox", "--net", "none", "-v", &mount, "--set", setting, "--"];
    let outcome = sandbox.holm(&[&args[..], &["/probe/holm-probe", "seccomp"]].concat());
    outcome.stdout.lines().filter(|line| line.starts_with("HOLE")).map(str::to_owned).collect()
}

/// [S1]: their memory is charged to nobody.
fn packet_rings_need_their_key(sandbox: &mut Sandbox) {
    assert_eq!(holes(sandbox, "security.packet-rings=false"), [""; 0]);
    let open = holes(sandbox, "security.packet-rings=true");
    assert_eq!(open.len(), 2, "{open:?}");
    assert!(open.iter().all(|hole| hole.contains("PACKET_RX_RING")), "{open:?}");
}

/// [S1] 32-bit programs make rings by socketcall, whose arguments no filter sees: refused to all
/// but guests with `arch = "i686"`. If what is open there no longer is, or a capability less closes
/// it, docs/decisions/0023 is to be looked at again.
fn packet_rings_of_32_bit_programs(sandbox: &mut Sandbox) {
    let mount = format!("{}:/probe:ro", sandbox.probe_directory().display());
    let got = |what: &str, arch: &str, before: &str| {
        let arch = format!("arch={arch}");
        let script = format!("{before} /probe/holm-probe use-up {what}-by-socketcall 1");
        let args = ["run", "--base", "busybox", "--net", "none", "-v", &mount, "--set", &arch];
        let less = ["--set", "security.caps+=-CAP_NET_RAW"];
        let less = if before.is_empty() { &[][..] } else { &less };
        sandbox.holm(&[&args[..], less, &["--", "sh", "-c", &script]].concat()).ok().stdout
    };
    for what in ["packet-rings", "xdp-rings"] {
        assert_eq!(got(what, "native", ""), "0 Operation not permitted (os error 1)\n", "{what}");
    }
    let open = "1 no more wanted\n";
    assert_eq!(got("packet-rings", "i686", ""), open);
    assert_eq!(got("packet-rings", "i686", "unshare -U -r -n"), open);
}

fn userfaultfd_needs_its_key(sandbox: &mut Sandbox) {
    assert_eq!(holes(sandbox, "security.userfaultfd=false"), [""; 0]);
    let open = holes(sandbox, "security.userfaultfd=true");
    if open.is_empty() && std::fs::metadata("/proc/sys/vm/unprivileged_userfaultfd").is_err() {
        skip("this kernel has no userfaultfd");
    }
    assert!(matches!(&open[..], [one] if one.contains("userfaultfd")), "{open:?}");
}
