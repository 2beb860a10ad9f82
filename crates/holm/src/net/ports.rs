//! Checking that published ports are free, and finding out who uses them if they are not.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, ipproto, socket_with, sockopt};

use super::addresses::ADDRESS_MAX;
use super::error::Error;
use super::link;
use super::netlink::Socket;
use super::published::{Published, overlap};
use super::request::Request;
use crate::config::{Ports, Proto, Publish};
use crate::record::Network;
use crate::record::ports::{encode, proto_name};

/// Links from the instances of this host to their Holm roots.
const INSTANCES: &str = "/run/holm/instances";

/// The first port of the first block that `net.ports = "auto"` gives, above those of most services;
/// the ports of context ids up to 711 are below those that the kernel gives to whoever asks for any
/// (32768 to 60999).
const AUTO_FIRST: u16 = 10000;
/// So many blocks further on those of the next Holm root begin: 27 are spread over all blocks.
const BLOCKS_APART: u32 = 37;

/// The instances of this host, with `own`.
pub fn instances(own: u8) -> Result<Vec<u8>, Error> {
    let failed = |source| Error::Instances { path: INSTANCES, source };
    let mut all = vec![own];
    match fs::read_dir(INSTANCES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        entries => {
            for entry in entries.map_err(failed)? {
                let name = entry.map_err(failed)?.file_name();
                all.extend(name.to_str().and_then(|name| name.parse::<u8>().ok()));
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// The ports of a range that a guest has, on the host. One that is not given is told by the
/// guest's context id, so it is the same at each start, and of no other guest of this Holm root.
pub fn range(instance: u8, context: u32, ports: Ports) -> RangeInclusive<u16> {
    match ports {
        Ports::Range(first, last) => first..=last,
        Ports::Auto(count) => {
            // Another Holm root begins elsewhere, so that small ones do not meet.
            let shift = u32::from(instance - 1) * BLOCKS_APART;
            let block = (context + shift) % (ADDRESS_MAX + 1);
            let first = AUTO_FIRST + u16::try_from(block).unwrap_or(0) * Ports::AUTO_MAX;
            first..=first + (count - 1)
        }
    }
}

/// Fails if a guest publishes a port twice.
pub fn check_own(network: &Network) -> Result<(), Error> {
    for (at, port) in network.publish.iter().enumerate() {
        if network.publish[..at].iter().any(|earlier| overlap(earlier, port)) {
            return Err(Error::PortOfGuest {
                port: name(port),
                guest: "this guest itself".to_owned(),
            });
        }
    }
    Ok(())
}

/// Fails if another guest of any Holm root publishes one of a guest's ports. Reads the interfaces
/// of all guests.
pub fn check_guests(socket: &Socket, network: &Network) -> Result<(), Error> {
    for other in link::all(socket)?.iter().filter(|link| link.name != network.host_if) {
        let Some((instance, context)) = guest_of(&other.name) else { continue };
        let Published { ports, .. } = other.published();
        if let Some(port) =
            network.publish.iter().find(|port| ports.iter().any(|taken| overlap(taken, port)))
        {
            return Err(Error::PortOfGuest {
                port: name(port),
                guest: describe_guest(instance, context),
            });
        }
    }
    Ok(())
}

/// Fails if a process uses one of a guest's ports on the host.
pub fn check_host(network: &Network) -> Result<(), Error> {
    network.publish.iter().try_for_each(|port| probe(port, network.guest_v6.is_some()))
}

fn name(port: &Publish) -> String {
    encode(std::slice::from_ref(port)).replace(&format!(":{}/", port.guest_port), "/")
}

/// The instance and the context id in the name of a guest's interface.
fn guest_of(interface: &str) -> Option<(u8, u32)> {
    let (instance, context) = interface.strip_prefix('h')?.split_once('-')?;
    Some((instance.parse().ok()?, context.parse().ok()?))
}

/// The link to the Holm root of an instance.
pub fn root_link(instance: u8) -> PathBuf {
    Path::new(INSTANCES).join(instance.to_string())
}

/// Describes the guest with a context id; by its name if its Holm root is known.
fn describe_guest(instance: u8, context: u32) -> String {
    let root = root_link(instance);
    let holm_root = fs::read_link(&root)
        .map_or_else(|_| format!("Holm instance {instance}"), |root| root.display().to_string());
    let guest = fs::read_link(root.join(format!("ids/{context}")));
    match guest.as_deref().map(Path::file_name) {
        Ok(Some(name)) => format!("guest {} of {holm_root}", name.display()),
        _ => format!("the guest with context id {context} of {holm_root}"),
    }
}

/// Binds the port as a server would, and closes it at once.
fn probe(port: &Publish, v6: bool) -> Result<(), Error> {
    let wildcards = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    let addresses = match &port.host_ip {
        Some(ip) => std::slice::from_ref(ip),
        None if v6 => &wildcards[..],
        None => &wildcards[..1],
    };
    for address in addresses {
        match try_bind(*address, port) {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => {
                let owner = owner(port).unwrap_or_else(|| "a process".to_owned());
                return Err(Error::PortTaken { port: name(port), owner });
            }
            Err(Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT) => {
                return Err(Error::NoSuchAddress { port: name(port), address: *address });
            }
            Err(errno) => return Err(Error::Kernel { request: Request::TryPort, errno }),
        }
    }
    Ok(())
}

fn try_bind(address: IpAddr, port: &Publish) -> Result<(), Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let (kind, protocol) = match port.proto {
        Proto::Tcp => (SocketType::STREAM, ipproto::TCP),
        Proto::Udp => (SocketType::DGRAM, ipproto::UDP),
    };
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, Some(protocol))?;
    if port.proto == Proto::Tcp {
        // Only listeners are in the way, not connections in TIME_WAIT.
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    bind(&socket, &SocketAddr::new(address, port.host_port))
}

/// The process that uses a port, as "nginx (pid 12)". The search is slow, and done only after a
/// start has failed.
fn owner(port: &Publish) -> Option<String> {
    let protocol = proto_name(port.proto);
    let inodes: Vec<String> = [protocol.to_owned(), format!("{protocol}6")]
        .iter()
        .filter_map(|table| fs::read_to_string(format!("/proc/thread-self/net/{table}")).ok())
        .flat_map(|table| sockets(&table, port.proto, port.host_port))
        .collect();
    let wanted: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    for process in fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let Ok(files) = fs::read_dir(process.path().join("fd")) else { continue };
        if files
            .flatten()
            .filter_map(|file| fs::read_link(file.path()).ok())
            .any(|link| wanted.iter().any(|socket| link.as_os_str() == socket.as_str()))
        {
            let command = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some(format!("{} (pid {pid})", command.trim_end()));
        }
    }
    None
}

/// The inodes of the sockets in a table of /proc/net that use a port; of TCP, those that listen.
pub fn sockets(table: &str, protocol: Proto, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let wanted = format!("{port:04X}");
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
            let bound =
                local_port == wanted && (protocol == Proto::Udp || fields.get(3) == Some(&LISTEN));
            bound.then(|| fields.get(9).map(ToString::to_string))?
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_found_in_proc() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 24680 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 13579 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11111 1 0000000000000000 100 0 0 10 0\n";
        assert_eq!(sockets(table, Proto::Tcp, 8080), ["24680"]);
        assert_eq!(sockets(table, Proto::Udp, 8080), ["24680", "13579"]);
    }

    #[test]
    fn every_context_id_has_ports_of_its_own() {
        assert_eq!(range(1, 1, Ports::Auto(32)), 10032..=10063);
        assert_eq!(range(1, 2, Ports::Auto(8)), 10064..=10071);
        assert_eq!(range(2, 1, Ports::Auto(32)), 11216..=11247);
        assert_eq!(range(9, 700, Ports::Range(20000, 20099)), 20000..=20099);
        for instance in 1..=27 {
            let mut blocks: Vec<u16> = (1..=ADDRESS_MAX)
                .map(|context| *range(instance, context, Ports::Auto(1)).start())
                .collect();
            blocks.sort_unstable();
            assert!(blocks.windows(2).all(|pair| pair[1] >= pair[0] + Ports::AUTO_MAX));
        }
    }

    #[test]
    fn ports_are_named_without_the_guests() {
        let port = Publish {
            host_ip: Some("127.0.0.1".parse().unwrap()),
            host_port: 8080,
            guest_port: 80,
            proto: Proto::Tcp,
        };
        assert_eq!(name(&port), "127.0.0.1:8080/tcp");
    }

    #[test]
    fn only_guests_interfaces_are_guests() {
        assert_eq!(guest_of("h1-17"), Some((1, 17)));
        for other in ["eth0", "h1", "h-1", "hx-1", "h1-x", "veth1-1"] {
            assert_eq!(guest_of(other), None, "{other}");
        }
    }
}
