//! Sysctls for private networks: forwarding on the host, IPv6 autoconfiguration on `eth0`.

use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use super::super::error::Error;
use super::super::sysctl::{read, set_ipv6, write};

const IPV4: &str = "/proc/sys/net/ipv4/ip_forward";
const IPV6: &str = "/proc/sys/net/ipv6/conf";

/// Enables forwarding on the host.
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

/// Changes `accept_ra` of the host's interfaces from 1 to 2. With 1, a host that forwards ignores
/// router advertisements and drops the default route that it has learned from one. `default` is not
/// changed, because guests' interfaces inherit it, and a guest must not advertise routes to the
/// host.
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
        // Errors are ignored: the interface may have disappeared.
        if read(&path).is_ok_and(|value| value == "1") {
            let _ = write(&path, "2");
        }
    }
    Ok(())
}

/// Disables duplicate address detection (`accept_dad`) and router advertisements (`accept_ra`) on
/// an interface of the current network namespace, that of the guest with this `proc`: the link has
/// no other hosts, and Holm sets the addresses. Errors are ignored, because the addresses are
/// usable in any case.
pub fn disable_ipv6_discovery(proc: BorrowedFd<'_>, interface: &str) {
    for setting in ["accept_dad", "accept_ra"] {
        set_ipv6(proc, interface, setting, "0");
    }
}
