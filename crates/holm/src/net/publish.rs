//! Published ports as text: `8080:80/tcp`, `127.0.0.1:53:53/udp`, `[fd00::1]:9000-9010:9000/tcp`.
//!
//! A guest's ports are written into its interface's alias on the host: there they live exactly as long as the interface,
//! survive a wiped /run and a flushed ruleset, and `ip link` shows them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Plan;
use crate::config::{Proto, Publish};

/// The longest alias that the kernel stores, in bytes.
pub const ALIAS_MAX: usize = 255;

/// The word of a protocol.
pub fn proto_name(proto: Proto) -> &'static str {
    match proto {
        Proto::Tcp => "tcp",
        Proto::Udp => "udp",
    }
}

/// A guest's addresses and published ports, as its interface's alias on the host keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Published {
    pub v4: Option<Ipv4Addr>,
    pub v6: Option<Ipv6Addr>,
    pub ports: Vec<Publish>,
}

impl Published {
    pub fn of(plan: &Plan) -> Self {
        Self { v4: Some(plan.guest_v4), v6: plan.guest_v6, ports: plan.publish.clone() }
    }

    /// The alias; empty without ports.
    pub fn alias(&self) -> String {
        if self.ports.is_empty() {
            return String::new();
        }
        let mut words: Vec<String> = self.guests().map(|guest| guest.to_string()).collect();
        words.push(encode(&self.ports));
        words.join(" ")
    }

    /// Reads an alias; words that are something else are passed over, since anybody may set an alias.
    pub fn parse(alias: &str) -> Self {
        let mut published = Self { ports: decode(alias), ..Self::default() };
        for word in alias.split(' ') {
            match word.parse() {
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

/// Writes ports with runs merged, separated by spaces.
pub fn encode(ports: &[Publish]) -> String {
    let mut sorted = ports.to_vec();
    sorted.sort_by_key(|port| (port.host_ip, proto_name(port.proto), port.host_port));
    let mut words: Vec<String> = Vec::new();
    for run in sorted.chunk_by(follows) {
        let (first, last) = (run[0], run[run.len() - 1]);
        let address = match first.host_ip {
            None => String::new(),
            Some(IpAddr::V4(v4)) => format!("{v4}:"),
            Some(IpAddr::V6(v6)) => format!("[{v6}]:"),
        };
        let end = if run.len() > 1 { format!("-{}", last.host_port) } else { String::new() };
        words.push(format!(
            "{address}{}{end}:{}/{}",
            first.host_port,
            first.guest_port,
            proto_name(first.proto)
        ));
    }
    words.join(" ")
}

fn follows(one: &Publish, next: &Publish) -> bool {
    (one.host_ip, one.proto) == (next.host_ip, next.proto)
        && one.host_port.checked_add(1) == Some(next.host_port)
        && one.guest_port.checked_add(1) == Some(next.guest_port)
}

/// Reads what [`encode`] wrote and passes over other words.
pub fn decode(text: &str) -> Vec<Publish> {
    text.split(' ').filter_map(decode_run).flatten().collect()
}

fn decode_run(word: &str) -> Option<Vec<Publish>> {
    let (rest, proto) = word.rsplit_once('/')?;
    let proto = match proto {
        "tcp" => Proto::Tcp,
        "udp" => Proto::Udp,
        _ => return None,
    };
    let (rest, guest) = rest.rsplit_once(':')?;
    let guest: u16 = guest.parse().ok()?;
    let (host_ip, ports) = match rest.rsplit_once(':') {
        Some((address, ports)) => (Some(address.trim_matches(['[', ']']).parse().ok()?), ports),
        None => (None, rest),
    };
    let (first, last) = match ports.split_once('-') {
        Some((first, last)) => (first.parse().ok()?, last.parse().ok()?),
        None => (ports.parse().ok()?, ports.parse().ok()?),
    };
    (first..=last)
        .map(|host_port: u16| {
            let guest_port = guest.checked_add(host_port - first)?;
            Some(Publish { host_ip, host_port, guest_port, proto })
        })
        .collect()
}

/// Whether two published ports cannot both be served: an unrestricted one takes its port on every address.
pub fn overlap(one: &Publish, other: &Publish) -> bool {
    one.proto == other.proto
        && one.host_port == other.host_port
        && (one.host_ip == other.host_ip || one.host_ip.is_none() || other.host_ip.is_none())
}

/// `serde` form of a list of ports: the text above.
pub mod as_text {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::config::Publish;

    pub fn serialize<S: Serializer>(ports: &[Publish], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::encode(ports))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Publish>, D::Error> {
        Ok(super::decode(&String::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(host_ip: Option<&str>, host_port: u16, guest_port: u16, proto: Proto) -> Publish {
        Publish { host_ip: host_ip.map(|ip| ip.parse().unwrap()), host_port, guest_port, proto }
    }

    #[test]
    fn runs_are_merged_and_come_back() {
        let ports = [
            port(None, 8081, 81, Proto::Tcp),
            port(None, 8080, 80, Proto::Tcp),
            port(None, 8082, 90, Proto::Tcp),
            port(Some("127.0.0.1"), 53, 53, Proto::Udp),
            port(Some("fd00::1"), 65535, 65535, Proto::Tcp),
        ];
        let text = encode(&ports);
        assert_eq!(
            text,
            "8080-8081:80/tcp 8082:90/tcp 127.0.0.1:53:53/udp [fd00::1]:65535:65535/tcp"
        );
        let back = decode(&text);
        assert_eq!(back.len(), ports.len());
        assert!(ports.iter().all(|port| back.contains(port)));
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
    fn foreign_aliases_are_no_ports() {
        for text in [
            "",
            "uplink to rack 4",
            "x:80/tcp",
            "1:2/sctp",
            "80/tcp",
            "1-9:65530/tcp",
            "9-1:5/tcp x",
        ] {
            assert_eq!(decode(text), [], "{text}");
        }
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
