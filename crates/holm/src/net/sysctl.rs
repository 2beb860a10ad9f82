//! Kernel settings of a network namespace, below /proc/sys/net.

use std::fs;
use std::path::Path;

use super::error::Error;

const PING: &str = "/proc/sys/net/ipv4/ping_group_range";

/// Reads a setting.
pub fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path)
        .map(|text| text.trim_end().to_owned())
        .map_err(|source| Error::Setting { what: "read", path: path.to_owned(), source })
}

/// Writes a setting.
pub fn write(path: &Path, value: &str) -> Result<(), Error> {
    fs::write(path, value).map_err(|source| Error::Setting {
        what: "write",
        path: path.to_owned(),
        source,
    })
}

/// Sets `net.ipv4.ping_group_range` in the current network namespace to `count` groups from the
/// host's number `first` on. Distributions depend on it (ping of Debian 13 has no capability of its
/// own), but what they set at boot names groups that a guest does not have, which the kernel
/// refuses. Failing is no error: guest root can ping in any case.
pub fn set_ping_group_range(first: u32, count: u32) {
    let _ = fs::write(PING, format!("{first} {}", first + (count - 1)));
}
