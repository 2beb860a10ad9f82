//! Sysctls of a network namespace, below /proc/sys/net.

use std::fs;
use std::path::Path;

use super::error::Error;

const PING: &str = "/proc/sys/net/ipv4/ping_group_range";

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

/// Sets an IPv6 sysctl of an interface of the current network namespace. Errors are ignored: there
/// may be no IPv6.
pub fn set_ipv6(interface: &str, name: &str, value: &str) {
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{interface}/{name}"), value);
}

/// Sets `net.ipv4.ping_group_range` in the current network namespace to `count` groups from `first`
/// (a gid of the host) on. Distributions depend on this sysctl (ping of Debian 13 has no capability
/// of its own), but the range that they set at boot includes groups that a guest does not have, so
/// the kernel refuses it. Errors are ignored: guest root can ping in any case.
pub fn set_ping_group_range(first: u32, count: u32) {
    let _ = fs::write(PING, format!("{first} {}", first + (count - 1)));
}
