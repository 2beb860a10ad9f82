//! Published ports: `8080:80/tcp`.

use std::net::{IpAddr, Ipv6Addr};

use super::port_range;
use crate::config::types::{Proto, Publish};
use crate::config::units::Parsed;

const PUBLISH_HELP: &str = "write [HOST-ADDRESS:]HOST-PORT:GUEST-PORT[/tcp|/udp], as 8080:80/tcp, \
    127.0.0.1:8080:80, [2001:db8::2]:8080:80 or 8000-8009:9000-9009";

/// `8080:80/tcp`, `127.0.0.1:8080:80`, `[2001:db8::2]:53:53/udp`, `8000-8009:9000-9009`: one entry
/// for each port.
pub(in crate::config) fn publish(text: &str) -> Parsed<Vec<Publish>> {
    let wrong = |what: String| format!("{what}; {PUBLISH_HELP}");
    let (ports, proto) = match text.rsplit_once('/') {
        None | Some((_, "tcp")) => (text.rsplit_once('/').map_or(text, |(p, _)| p), Proto::Tcp),
        Some((ports, "udp")) => (ports, Proto::Udp),
        Some((_, other)) => {
            return Err(wrong(format!("{other:?} is not a protocol that can be published")));
        }
    };
    let (rest, guest) =
        ports.rsplit_once(':').ok_or_else(|| wrong(format!("{text:?} names only one port")))?;
    let (address, host) = match rest.rsplit_once(':') {
        None => (None, rest),
        Some((address, host)) => (Some(address), host),
    };
    let host_ip = match address {
        None => None,
        Some(a) => Some(host_address(a).ok_or_else(|| wrong(format!("{a:?} is not an address")))?),
    };
    if host_ip == Some(Ipv6Addr::LOCALHOST.into()) {
        return Err(
            "no port can be published on ::1: the kernel routes no answer to it; write 127.0.0.1"
                .to_owned(),
        );
    }
    let (host, guest) = (port_range(host).map_err(&wrong)?, port_range(guest).map_err(&wrong)?);
    if host.len() != guest.len() {
        return Err(wrong(format!(
            "{} ports of the host do not fit {} ports of the guest",
            host.len(),
            guest.len()
        )));
    }
    Ok(host
        .zip(guest)
        .map(|(host_port, guest_port)| Publish { host_ip, host_port, guest_port, proto })
        .collect())
}

/// An IPv6 address needs brackets, or its last group would be read as a port.
fn host_address(text: &str) -> Option<IpAddr> {
    match text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        Some(v6) => v6.parse().ok().filter(IpAddr::is_ipv6),
        None => text.parse().ok().filter(IpAddr::is_ipv4),
    }
}

impl std::fmt::Display for Publish {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host_ip {
            None => {}
            Some(IpAddr::V4(address)) => write!(f, "{address}:")?,
            Some(IpAddr::V6(address)) => write!(f, "[{address}]:")?,
        }
        let proto = match self.proto {
            Proto::Tcp => "tcp",
            Proto::Udp => "udp",
        };
        write!(f, "{}:{}/{proto}", self.host_port, self.guest_port)
    }
}
