//! Units: what is understood, what is not, and that what is shown is read again.

use std::fmt::Debug;
use std::time::Duration;

use super::super::types::Signal;
use super::super::{units, values};

/// Each text gives its value.
fn all<T: PartialEq + Debug>(parse: impl Fn(&str) -> Result<T, String>, cases: &[(&str, T)]) {
    for (text, value) in cases {
        assert_eq!(parse(text).as_ref(), Ok(value), "{text:?}");
    }
}

/// Each text is refused with an error that contains the other.
fn none<T: Debug>(parse: impl Fn(&str) -> Result<T, String>, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let error = parse(text).expect_err(text);
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn sizes() {
    all(
        units::size,
        &[
            ("0", 0),
            ("1", 1),
            ("4096", 4096),
            ("4_096", 4096),
            ("1B", 1),
            ("1K", 1 << 10),
            ("1k", 1 << 10),
            ("1KiB", 1 << 10),
            ("512M", 512 << 20),
            ("512m", 512 << 20),
            ("512 M", 512 << 20),
            (" 512M ", 512 << 20),
            ("512MiB", 512 << 20),
            ("512mib", 512 << 20),
            ("10G", 10 << 30),
            ("10GiB", 10 << 30),
            ("1.5G", 3 << 29),
            ("0.5K", 512),
            ("2T", 2 << 40),
            ("2TiB", 2 << 40),
            ("16777215T", 16_777_215 << 40),
            ("18446744073709551615", u64::MAX),
            ("9007199254740993", 9_007_199_254_740_993),
        ],
    );
    none(
        units::size,
        &[
            ("", "not a size"),
            ("M", "not a size"),
            ("512X", "\"X\" is not a unit of size"),
            ("512MB", "write 512M (1024)"),
            ("1gb", "write 1G (1024)"),
            ("10 KB", "write 10K (1024)"),
            ("25%", "share of the host's memory"),
            ("-1", "not a size"),
            ("1.2.3M", "not a size"),
            ("1.M", "not a size"),
            (".5M", "not a size"),
            ("1e9", "\"e9\" is not a unit"),
            ("inf", "not a size"),
            ("+5M", "not a size"),
            ("512 M B", "not a unit"),
            ("16777216T", "more than any host has"),
            ("18446744073709551616", "more than any host has"),
            ("99999999999.5T", "more than any host has"),
            ("512Mbit", "not a unit"),
            ("0x10", "not a unit"),
            ("unlimited", "not a size"),
        ],
    );
}

#[test]
fn times() {
    all(
        units::duration,
        &[
            ("30", Duration::from_secs(30)),
            ("30s", Duration::from_secs(30)),
            ("30 s", Duration::from_secs(30)),
            ("30sec", Duration::from_secs(30)),
            ("500ms", Duration::from_millis(500)),
            ("0", Duration::ZERO),
            ("1.5s", Duration::from_millis(1500)),
            ("2m", Duration::from_mins(2)),
            ("2min", Duration::from_mins(2)),
            ("1h", Duration::from_hours(1)),
            ("0.5h", Duration::from_mins(30)),
        ],
    );
    none(
        units::duration,
        &[
            ("", "not a time"),
            ("s", "not a time"),
            ("3d", "\"d\" is not a unit of time"),
            ("3 S", "not a unit"),
            ("-3s", "not a time"),
            ("1..s", "not a time"),
        ],
    );
}

#[test]
#[allow(clippy::float_cmp)] // The same digits give the same number.
fn cpu_time() {
    all(
        units::cpus,
        &[
            ("1", 1.0),
            ("1.5", 1.5),
            ("1.5 CPUs", 1.5),
            ("1 cpu", 1.0),
            ("2CPUS", 2.0),
            ("25%", 0.25),
            ("150%", 1.5),
            ("150 %", 1.5),
            ("0.01", 0.01),
            ("1%", 0.01),
            ("8192", 8192.0),
        ],
    );
    none(
        units::cpus,
        &[
            ("", "not an amount"),
            ("0", "out of range"),
            ("0%", "out of range"),
            ("0.009", "out of range"),
            ("8193", "out of range"),
            ("-1", "not an amount"),
            ("inf", "not an amount"),
            ("NaN", "not an amount"),
            ("1.5M", "\"M\" is not a unit of CPU time"),
            ("half", "not an amount"),
            ("1e3", "not a unit"),
            ("50%%", "not a unit"),
        ],
    );
}

#[test]
fn counts() {
    all(|t| units::count(t, 1, 10_000), &[("1", 1), ("10000", 10_000), ("1_000", 1000)]);
    none(
        |t| units::count(t, 1, 10_000),
        &[
            ("0", "out of range, 1 to 10000"),
            ("10001", "out of range"),
            ("", "not a whole"),
            ("1.5", "not a whole"),
            ("-1", "not a whole"),
            ("+1", "out of range"),
            ("1K", "not a whole"),
        ],
    );
}

#[test]
fn ports() {
    let shown = |text: &str| {
        values::publish(text)
            .map(|p| p.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    };
    let cases = [
        ("8080:80", "8080:80/tcp"),
        ("8080:80/tcp", "8080:80/tcp"),
        ("53:53/udp", "53:53/udp"),
        ("127.0.0.1:8080:80", "127.0.0.1:8080:80/tcp"),
        ("0.0.0.0:1:2", "0.0.0.0:1:2/tcp"),
        ("[fd00::1]:8080:80", "[fd00::1]:8080:80/tcp"),
        ("[::]:8080:80/udp", "[::]:8080:80/udp"),
        ("1-3:4-6", "1:4/tcp 2:5/tcp 3:6/tcp"),
        ("65535:65535", "65535:65535/tcp"),
    ];
    all(shown, &cases.map(|(a, b)| (a, b.to_owned())));
    none(
        values::publish,
        &[
            ("8080", "only one port"),
            ("", "only one port"),
            ("0:80", "\"0\" is not a port"),
            ("80:0", "\"0\" is not a port"),
            ("65536:80", "not a port"),
            ("80:+80", "not a port"),
            ("http:80", "not a port"),
            ("80:80/sctp", "\"sctp\" is not a protocol"),
            ("80:80/TCP", "not a protocol"),
            ("::1:8080:80", "\"::1\" is not an address"),
            ("[::1]:8080:80", "on ::1: the kernel routes no answer to it; write 127.0.0.1"),
            ("[127.0.0.1]:1:2", "not an address"),
            ("[::1:1:2", "not an address"),
            ("1.2.3:1:2", "not an address"),
            ("1-3:4-5", "3 ports of the host do not fit 2"),
            ("3-1:3-1", "runs backwards"),
            ("1-:2", "\"\" is not a port"),
            ("80:80/tcp/udp", "not a port"),
            (" 80:80", "not a port"),
        ],
    );
}

#[test]
fn mounts() {
    let shown = |text: &str| values::mount(text).map(|m| values::show_mount(&m));
    let cases = [
        ("/srv/data:/data", "/srv/data:/data"),
        ("/srv//data/:/data/", "/srv/data:/data"),
        ("/a:/b:ro", "/a:/b:ro"),
        ("/a:/b:rw", "/a:/b"),
        ("/:/host:ro", "/:/host:ro"),
        ("/a b:/c d", "/a b:/c d"),
        ("/a/./b:/c", "/a/b:/c"),
    ];
    all(shown, &cases.map(|(a, b)| (a, b.to_owned())));
    none(
        values::mount,
        &[
            ("/a", "has no target"),
            ("/a:ro", "has no target"),
            ("data:/data", "\"data\" is not an absolute path"),
            ("/a:b", "not an absolute path"),
            ("/a/../b:/c", "must not contain"),
            ("/a:/b/..", "must not contain"),
            ("/a:/", "whole root"),
            ("/a:/b:/c", "too many parts"),
            ("/a:/b:z", "too many parts"),
            ("", "no target"),
            (":/b", "not an absolute path"),
        ],
    );
}

#[test]
fn signals() {
    let cases = [
        ("SIGTERM", 15),
        ("term", 15),
        ("15", 15),
        ("KILL", 9),
        ("SIGRTMIN", 34),
        ("SIGRTMIN+3", 37),
        ("rtmin+30", 64),
        ("SIGRTMAX", 64),
        ("RTMAX-1", 63),
        ("PWR", 30),
        ("64", 64),
    ];
    all(Signal::parse, &cases.map(|(t, n)| (t, Signal(n))));
    none(
        Signal::parse,
        &[
            ("", "not a signal"),
            ("0", "not a signal"),
            ("65", "not a signal"),
            ("-1", "not a signal"),
            ("SIGFOO", "not a signal"),
            ("RTMIN+31", "not a signal"),
            ("RTMIN-1", "not a signal"),
            ("RTMAX+1", "not a signal"),
            ("SIG", "not a signal"),
            ("RTMIN+", "not a signal"),
        ],
    );
    for number in (1..=31).chain(34..=64) {
        assert_eq!(Signal::parse(&Signal(number).to_string()), Ok(Signal(number)));
    }
}

#[test]
fn lists_of_cpus() {
    let cases = [("0", "0"), ("0-3", "0-3"), ("0-3,6", "0-3,6"), ("0, 2", "0,2"), ("1,0", "1,0")];
    all(values::cpu_set, &cases.map(|(a, b)| (a, b.to_owned())));
    none(
        values::cpu_set,
        &[
            ("", "not a list"),
            ("3-1", "not a list"),
            ("a", "not a list"),
            ("0,", "not a list"),
            ("-1", "not a list"),
            ("0-", "not a list"),
            ("0-1-2", "not a list"),
            ("1.5", "not a list"),
        ],
    );
}

#[test]
fn capabilities() {
    let cases = [
        ("CAP_NET_ADMIN", "CAP_NET_ADMIN"),
        ("net_admin", "CAP_NET_ADMIN"),
        ("+sys_time", "CAP_SYS_TIME"),
        ("-net_raw", "-CAP_NET_RAW"),
        ("-CAP_net_raw", "-CAP_NET_RAW"),
    ];
    all(values::capability, &cases.map(|(a, b)| (a, b.to_owned())));
    none(
        values::capability,
        &[
            ("", "not a capability"),
            ("CAP_NET_ADMINN", "did you mean CAP_NET_ADMIN?"),
            ("sys_admn", "did you mean CAP_SYS_ADMIN?"),
            ("--net_raw", "not a capability"),
            ("all", "not a capability"),
        ],
    );
}

#[test]
fn resource_limits() {
    let shown =
        |text: &str| values::rlimit("nofile", text).map(|l| values::show_rlimit("nofile", l));
    let cases = [
        ("1024", "1024"),
        ("1024:4096", "1024:4096"),
        ("unlimited", "unlimited"),
        ("5:infinity", "5:unlimited"),
    ];
    all(shown, &cases.map(|(a, b)| (a, b.to_owned())));
    none(
        shown,
        &[
            ("4096:1024", "above the hard limit"),
            ("unlimited:5", "above"),
            ("1K", "not a whole"),
            ("", "not a whole"),
            ("1:2:3", "not a whole"),
        ],
    );
    let bytes = |text: &str| values::rlimit("stack", text).map(|l| values::show_rlimit("stack", l));
    all(bytes, &[("8M", "8M".to_owned()), ("8M:1G", "8M:1G".to_owned())]);
    none(
        values::rlimit_name,
        &[
            ("nofiles", "did you mean \"nofile\"?"),
            ("NOFILE", "they are as, core"),
            ("x", "no resource limit"),
        ],
    );
}

#[test]
fn names_of_things() {
    all(values::name, &["a", "debian13", "a.b_c-d", &"x".repeat(63)].map(|n| (n, n.to_owned())));
    none(
        values::name,
        &[
            ("", "not a valid name"),
            ("-a", "not a valid name"),
            ("a/b", "not a valid name"),
            ("..", "not a valid name"),
            (&"x".repeat(64), "not a valid name"),
            ("ä", "not a valid name"),
            ("a b", "not a valid name"),
        ],
    );
    all(values::hostname, &["a", "web-1.example.org", &"x".repeat(64)].map(|n| (n, n.to_owned())));
    none(
        values::hostname,
        &[
            ("", "not a valid host name"),
            ("-a", "not a valid host"),
            ("a-", "not a valid host"),
            ("a..b", "not a valid host"),
            ("a_b", "not a valid host"),
            (&"x".repeat(65), "not a valid host"),
        ],
    );
    none(
        values::device,
        &[
            ("fuse", "not an absolute"),
            ("/dev", "not a device"),
            ("/dev/../etc/shadow", "must not contain"),
            ("/etc/shadow", "below /dev"),
            ("/devil", "below /dev"),
        ],
    );
    none(
        values::address,
        &[
            ("0.0.0.0", "single host"),
            ("::", "single host"),
            ("224.0.0.1", "single host"),
            ("10.0.0.0/8", "not an IP"),
            ("host", "not an IP"),
        ],
    );
    none(
        values::variable,
        &[("1A", "cannot name"), ("A-B", "cannot name"), ("A B", "cannot name")],
    );
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 me@here";
    let with_options = format!("no-pty,command=\"/bin/date\" {key}");
    all(
        values::ssh_key,
        &[
            (key, key.to_owned()),
            (with_options.as_str(), with_options.clone()),
            (&format!(" {key}\n"), key.to_owned()),
        ],
    );
    none(
        values::ssh_key,
        &[
            ("", "not a public key"),
            ("ssh-ed25519", "not a public key"),
            ("/root/.ssh/id.pub", "not a public key"),
            ("-----BEGIN OPENSSH PRIVATE KEY-----", "private key"),
            ("a\nb", "one line"),
        ],
    );
}

#[test]
fn what_is_shown_is_read_again() {
    for shift in 0..64 {
        for bytes in [1_u64 << shift, (1 << shift) - 1, (1 << shift) + (1 << shift) / 2] {
            assert_eq!(units::size(&units::show_size(bytes)), Ok(bytes));
        }
    }
    for ms in [0, 1, 999, 1000, 1500, 60_000, 90_000, 3_600_000, 86_400_000, 61_001] {
        let time = Duration::from_millis(ms);
        assert_eq!(units::duration(&units::show_duration(time)), Ok(time));
    }
}
