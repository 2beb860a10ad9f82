//! Forwarding on the host, and quiet IPv6 on a guest's interface.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::error::Error;
use super::super::sysctl::{read, write};

const IPV4: &str = "/proc/sys/net/ipv4/ip_forward";
const IPV6: &str = "/proc/sys/net/ipv6/conf";

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
