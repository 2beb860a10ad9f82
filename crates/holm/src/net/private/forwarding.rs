//! Kernel settings of private networks: forwarding on the host, IPv6 discovery on `eth0`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::error::Error;
use super::super::sysctl::{read, write};

const IPV4: &str = "/proc/sys/net/ipv4/ip_forward";
const IPV6: &str = "/proc/sys/net/ipv6/conf";

/// Turns on forwarding if it is off.
pub fn enable() -> Result<(), Error> {
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

/// A host that forwards ignores router advertisements and drops the default route that it learned
/// from one, unless `accept_ra` of the interface is 2 ("even when forwarding"). So 1 becomes 2
/// first. `default` is not changed: guests' interfaces inherit it, and a guest must not advertise
/// routes to the host.
fn keep_router_advertisements() -> Result<(), Error> {
    let conf = Path::new(IPV6);
    let directories = fs::read_dir(conf).map_err(|source| Error::Setting {
        what: "read",
        path: conf.to_owned(),
        source,
    })?;
    for directory in directories.flatten() {
        if ["all", "default", "lo"].iter().any(|name| directory.file_name() == *name) {
            continue;
        }
        let path = directory.path().join("accept_ra");
        // An interface may disappear meanwhile.
        if read(&path).is_ok_and(|value| value == "1") {
            let _ = write(&path, "2");
        }
    }
    Ok(())
}

/// Turns off duplicate address detection and router solicitations on an interface of the current
/// network namespace: nobody else is on the link, and Holm sets the addresses. Failing is no error:
/// the addresses are usable in any case.
pub fn disable_ipv6_discovery(interface: &str) {
    for setting in ["accept_dad", "accept_ra"] {
        let _ = fs::write(format!("{IPV6}/{interface}/{setting}"), "0");
    }
}
