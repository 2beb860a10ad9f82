//! Published ports, as they are stored on a guest's interface.
//!
//! They are in the alias of the interface on the host. There they exist exactly as long as the
//! interface, survive a wiped /run and a flushed ruleset, and are shown by `ip link`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::config::Publish;
use crate::record::Network;
use crate::record::ports::{decode, encode};

/// The longest alias that the kernel stores, in bytes.
pub const ALIAS_MAX: usize = 255;

/// A guest's addresses and published ports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Published {
    pub v4: Option<Ipv4Addr>,
    pub v6: Option<Ipv6Addr>,
    pub ports: Vec<Publish>,
}

impl Published {
    pub fn of(network: &Network) -> Self {
        Self { v4: Some(network.guest_v4), v6: network.guest_v6, ports: network.publish.clone() }
    }

    /// The alias that stores them; empty without ports.
    pub fn alias(&self) -> String {
        if self.ports.is_empty() {
            return String::new();
        }
        let mut parts: Vec<String> = self.guests().map(|guest| guest.to_string()).collect();
        parts.push(encode(&self.ports));
        parts.join(" ")
    }

    /// Parses an alias. Skips everything else in it, because other programs may set aliases too.
    pub fn parse(alias: &str) -> Self {
        let mut published = Self { ports: decode(alias), ..Self::default() };
        for part in alias.split(' ') {
            match part.parse() {
                Ok(IpAddr::V4(v4)) => published.v4 = Some(v4),
                Ok(IpAddr::V6(v6)) => published.v6 = Some(v6),
                Err(_) => {}
            }
        }
        published
    }

    /// The guest's addresses.
    pub fn guests(&self) -> impl Iterator<Item = IpAddr> {
        self.v4.map(IpAddr::V4).into_iter().chain(self.v6.map(IpAddr::V6))
    }
}

/// Whether two published ports conflict. One without a host address takes its port on all
/// addresses.
pub fn overlap(one: &Publish, other: &Publish) -> bool {
    one.proto == other.proto
        && one.host_port == other.host_port
        && (one.host_ip == other.host_ip || one.host_ip.is_none() || other.host_ip.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Proto;

    fn port(host_ip: Option<&str>, host_port: u16, guest_port: u16, proto: Proto) -> Publish {
        Publish { host_ip: host_ip.map(|ip| ip.parse().unwrap()), host_port, guest_port, proto }
    }

    #[test]
    fn an_alias_comes_back() {
        let published = Published {
            v4: Some("10.97.0.1".parse().unwrap()),
            v6: Some("fd00:686f:6c6d:1::1".parse().unwrap()),
            ports: vec![port(Some("::1"), 80, 80, Proto::Tcp)],
        };
        assert_eq!(published.alias(), "10.97.0.1 fd00:686f:6c6d:1::1 [::1]:80:80/tcp");
        assert_eq!(Published::parse(&published.alias()), published);
        assert_eq!(Published { ports: vec![], ..published }.alias(), "");
    }

    #[test]
    fn a_restricted_port_collides_with_an_unrestricted_one_only() {
        let all = port(None, 80, 80, Proto::Tcp);
        let one = port(Some("127.0.0.1"), 80, 80, Proto::Tcp);
        let two = port(Some("127.0.0.2"), 80, 81, Proto::Tcp);
        assert!(overlap(&all, &one) && overlap(&one, &all) && overlap(&all, &all));
        assert!(!overlap(&one, &two));
        assert!(!overlap(&all, &port(None, 80, 80, Proto::Udp)));
    }
}
