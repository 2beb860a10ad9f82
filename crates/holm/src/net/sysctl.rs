//! Sysctls of a network namespace, below /proc/sys/net.
//!
//! Those of a guest are set through the guest's own proc. A proc keeps a name for each network
//! namespace in which somebody has looked a sysctl up, all in one chain of the kernel's directory
//! cache: with those of a thousand guests in the host's, each look below its /proc/sys/net took 0.1
//! to 1 ms, whoever looked.

use std::fs;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat};

use super::error::Error;

/// Reads a sysctl.
pub fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path)
        .map(|text| text.trim_end().to_owned())
        .map_err(|source| Error::Setting { what: "read", path: path.to_owned(), source })
}

/// Writes a sysctl.
pub fn write(path: &Path, value: &str) -> Result<(), Error> {
    fs::write(path, value).map_err(|source| Error::Setting {
        what: "write",
        path: path.to_owned(),
        source,
    })
}

/// Sets an IPv6 sysctl of an interface of the current network namespace, which is that of the guest
/// with this `proc`. Errors are ignored: there may be no IPv6.
pub fn set_ipv6(proc: BorrowedFd<'_>, interface: &str, name: &str, value: &str) {
    set(proc, &format!("ipv6/conf/{interface}/{name}"), value);
}

/// Sets `net.ipv4.ping_group_range` in the current network namespace, which is that of the guest
/// with this `proc`, to `count` groups from `first` (a gid of the host) on. Distributions depend on
/// this sysctl (ping of Debian 13 has no capability of its own), but the range that they set at
/// boot includes groups that a guest does not have, so the kernel refuses it. Errors are ignored:
/// guest root can ping in any case.
pub fn set_ping_group_range(proc: BorrowedFd<'_>, first: u32, count: u32) {
    set(proc, "ipv4/ping_group_range", &format!("{first} {}", first + (count - 1)));
}

fn set(proc: BorrowedFd<'_>, name: &str, value: &str) {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let _ = openat(proc, format!("sys/net/{name}"), flags, Mode::empty())
        .and_then(|sysctl| rustix::io::write(&sysctl, value.as_bytes()));
}
