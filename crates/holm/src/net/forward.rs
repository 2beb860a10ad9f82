//! Kernel settings of the network: forwarding on the host, quiet IPv6 and ping for everybody inside.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Error;

const IPV4: &str = "/proc/sys/net/ipv4/ip_forward";
const IPV6: &str = "/proc/sys/net/ipv6/conf";
const PING: &str = "/proc/sys/net/ipv4/ping_group_range";

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path)
        .map(|text| text.trim_end().to_owned())
        .map_err(|source| Error::Setting { what: "read", path: path.to_owned(), source })
}

fn write(path: &Path, value: &str) -> Result<(), Error> {
    fs::write(path, value).map_err(|source| Error::Setting {
        what: "write",
        path: path.to_owned(),
        source,
    })
}

/// Switches on forwarding where it is off.
pub fn switch_on() -> Result<(), Error> {
    if read(Path::new(IPV4))? == "0" {
        write(Path::new(IPV4), "1")?;
    }
    let all = PathBuf::from(format!("{IPV6}/all/forwarding"));
    match read(&all) {
        Ok(value) if value == "0" => {
            keep_router_advertisements()?;
            write(&all, "1")
        }
        // Without IPv6 there is nothing to forward.
        Err(Error::Setting { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map(drop),
    }
}

/// A forwarding host ignores router advertisements, and drops the default route that it learned from one, unless an
/// interface says 2 ("even when forwarding"). So whatever hears them now (1) is told 2 first. `default` is left alone:
/// interfaces of guests are made from it, and a guest must not advertise routes to the host.
fn keep_router_advertisements() -> Result<(), Error> {
    let conf = Path::new(IPV6);
    let folders = fs::read_dir(conf).map_err(|source| Error::Setting {
        what: "read",
        path: conf.to_owned(),
        source,
    })?;
    for folder in folders.flatten() {
        if ["all", "default", "lo"].iter().any(|name| folder.file_name() == *name) {
            continue;
        }
        let path = folder.path().join("accept_ra");
        // An interface may vanish while we look.
        if read(&path).is_ok_and(|value| value == "1") {
            let _ = write(&path, "2");
        }
    }
    Ok(())
}

/// Duplicate address detection and solicitations off on an interface of the current network namespace: nobody else is
/// on the wire, and the addresses come from us. A comfort only: without /proc the addresses are usable all the same.
pub fn quiet_ipv6(interface: &str) {
    for setting in ["accept_dad", "accept_ra"] {
        let _ = fs::write(format!("{IPV6}/{interface}/{setting}"), "0");
    }
}

/// Lets `count` groups from the host's number `first` on ping, in the current network namespace. Distributions count on
/// it (Debian 13's ping has no rights of its own), but what they write at boot names groups that a guest does not have,
/// which the kernel refuses. A comfort only: guest root can ping all the same.
pub fn let_groups_ping(first: u32, count: u32) {
    let _ = fs::write(PING, format!("{first} {}", first + (count - 1)));
}
