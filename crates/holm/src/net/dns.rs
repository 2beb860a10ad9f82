//! The name servers of a guest.
//!
//! By default they are the host's. If the host's resolver listens on loopback, they are the
//! upstream servers of systemd-resolved; without systemd-resolved, guests query the gateway's
//! address, and the ruleset translates that to the host's resolver.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use super::addresses::GATEWAY_V4;
use super::error::Error;
use super::netlink::Socket;
use super::route::is_local;
use crate::failed::bytes_if_there;

/// The name servers in a resolv.conf. Lines that are none are skipped, as the resolver does.
fn servers(text: &str) -> Vec<IpAddr> {
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            (fields.next()? == "nameserver").then(|| fields.next())??.parse().ok()
        })
        .collect()
}

fn read(path: &str) -> Result<Vec<IpAddr>, Error> {
    let bytes = bytes_if_there(Path::new(path))?.unwrap_or_default();
    // Comments and search domains may be in any encoding.
    Ok(servers(&String::from_utf8_lossy(&bytes)))
}

/// Name servers for guests, and the host's loopback resolver if there is no other.
fn choose(host: &[IpAddr], upstream: &[IpAddr]) -> (Vec<IpAddr>, Option<Ipv4Addr>) {
    let usable = |list: &[IpAddr]| -> Vec<IpAddr> {
        list.iter().filter(|ip| !ip.is_loopback() && !is_link_local(**ip)).copied().collect()
    };
    for list in [host, upstream] {
        let found = usable(list);
        if !found.is_empty() {
            return (found, None);
        }
    }
    let loopback = host.iter().find_map(|ip| match ip {
        IpAddr::V4(v4) if v4.is_loopback() => Some(*v4),
        // A resolver that listens on ::1 listens on 127.0.0.1 too; the rules translate IPv4 only.
        IpAddr::V6(v6) if v6.is_loopback() => Some(Ipv4Addr::LOCALHOST),
        _ => None,
    });
    (loopback.map(|_| GATEWAY_V4.into()).into_iter().collect(), loopback)
}

/// Whether an address is link-local. Guests cannot reach such a server, because it is on a link of
/// the host.
fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// The host's resolver, as the ruleset has to know it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolver {
    /// The name servers of guests without `net.dns`, which may be addresses of the host.
    pub servers: Vec<IpAddr>,
    /// The host's loopback resolver, if guests' queries have to be translated to it.
    pub loopback: Option<Ipv4Addr>,
}

fn current() -> Result<(Vec<IpAddr>, Option<Ipv4Addr>), Error> {
    let host = read("/etc/resolv.conf")?;
    let plain = host.iter().any(|ip| !ip.is_loopback() && !is_link_local(*ip));
    let upstream = if plain { Vec::new() } else { read("/run/systemd/resolve/resolv.conf")? };
    Ok(choose(&host, &upstream))
}

/// The name servers of guests without `net.dns`.
pub fn host_servers() -> Result<Vec<IpAddr>, Error> {
    Ok(current()?.0)
}

/// The host's resolver.
pub fn resolver() -> Result<Resolver, Error> {
    let (servers, loopback) = current()?;
    Ok(Resolver { servers, loopback })
}

/// Whether guests without `net.dns` ask the host itself.
pub fn is_on_host() -> Result<bool, Error> {
    let (servers, loopback) = current()?;
    let socket = Socket::route()?;
    for server in servers {
        if is_local(&socket, server)? {
            return Ok(true);
        }
    }
    Ok(loopback.is_some())
}

/// A resolv.conf with these servers.
pub fn render(servers: &[IpAddr]) -> String {
    servers.iter().fold(
        String::from("# Written by Holm at every start; net.dns sets the servers.\n"),
        |mut text, server| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "nameserver {server}");
            text
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(list: &[&str]) -> Vec<IpAddr> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn resolv_conf_is_read_as_the_resolver_does() {
        let text = "# nameserver 1.1.1.1\nsearch a.b\nnameserver  192.0.2.1 \n\
                    nameserver 2001:db8::1\noptions x\nnameserver fe80::1%eth0\nnameserver\n";
        assert_eq!(servers(text), ips(&["192.0.2.1", "2001:db8::1"]));
    }

    #[test]
    fn a_resolv_conf_that_is_not_utf_8_has_its_servers() {
        let path = std::env::temp_dir().join(format!("holm-resolv-conf-{}", std::process::id()));
        let text =
            b"# f\xfcr alle\nnameserver 192.0.2.1\nnameserver 192.0.2.\xff\nnameserver ::7\n";
        std::fs::write(&path, text).unwrap();
        let found = read(path.to_str().unwrap());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(found.unwrap(), ips(&["192.0.2.1", "::7"]));
    }

    #[test]
    fn servers_by_host() {
        let gateway = ips(&["169.254.1.1"]);
        for (host, upstream, expected, resolver) in [
            (&["192.0.2.1", "127.0.0.1"][..], &[][..], ips(&["192.0.2.1"]), None),
            (
                &["127.0.0.53"],
                &["192.0.2.7", "2001:db8::7"],
                ips(&["192.0.2.7", "2001:db8::7"]),
                None,
            ),
            (&["127.0.0.53"], &[], gateway.clone(), Some("127.0.0.53")),
            (&["::1"], &["fe80::5"], gateway, Some("127.0.0.1")),
            (&[], &[], vec![], None),
        ] {
            let resolver = resolver.map(|text: &str| text.parse().unwrap());
            assert_eq!(
                choose(&ips(host), &ips(upstream)),
                (expected, resolver),
                "{host:?} {upstream:?}"
            );
        }
    }

    #[test]
    fn rendered_text_reads_back() {
        let list = ips(&["192.0.2.1", "2001:db8::1"]);
        assert_eq!(servers(&render(&list)), list);
    }
}
