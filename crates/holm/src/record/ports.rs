//! Published ports as text: `8080:80/tcp`, `127.0.0.1:53:53/udp`, `[fd00::1]:9000-9010:9000/tcp`.

use std::net::IpAddr;

use crate::config::{Proto, Publish};

/// The name of a protocol.
pub fn proto_name(proto: Proto) -> &'static str {
    match proto {
        Proto::Tcp => "tcp",
        Proto::Udp => "udp",
    }
}

/// Writes ports, separated by spaces; consecutive ones become a range.
pub fn encode(ports: &[Publish]) -> String {
    written(ports, false).join(" ")
}

/// Ports as `net.publish` has them; consecutive ones become a range.
pub fn shown(ports: &[Publish]) -> Vec<String> {
    written(ports, true)
}

/// A range of the guest's ports is told by its first one, or by both.
fn written(ports: &[Publish], both: bool) -> Vec<String> {
    let mut sorted = ports.to_vec();
    sorted.sort_by_key(|port| (port.host_ip, proto_name(port.proto), port.host_port));
    let range = |run: &[Publish], first: u16, last: u16, shown: bool| match run.len() {
        2.. if shown => format!("{first}-{last}"),
        _ => first.to_string(),
    };
    sorted
        .chunk_by(follows)
        .map(|run| {
            let (first, last) = (run[0], run[run.len() - 1]);
            let address = match first.host_ip {
                None => String::new(),
                Some(IpAddr::V4(v4)) => format!("{v4}:"),
                Some(IpAddr::V6(v6)) => format!("[{v6}]:"),
            };
            let host = range(run, first.host_port, last.host_port, true);
            let guest = range(run, first.guest_port, last.guest_port, both);
            format!("{address}{host}:{guest}/{}", proto_name(first.proto))
        })
        .collect()
}

fn follows(one: &Publish, next: &Publish) -> bool {
    (one.host_ip, one.proto) == (next.host_ip, next.proto)
        && one.host_port.checked_add(1) == Some(next.host_port)
        && one.guest_port.checked_add(1) == Some(next.guest_port)
}

/// Reads what [`encode`] wrote and skips anything else.
pub fn decode(text: &str) -> Vec<Publish> {
    text.split(' ').filter_map(decode_range).flatten().collect()
}

fn decode_range(text: &str) -> Option<Vec<Publish>> {
    let (rest, proto) = text.rsplit_once('/')?;
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

/// The `serde` form of a list of ports: the text of [`encode`](super::encode).
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
        assert_eq!(shown(&ports)[0], "8080-8081:80-81/tcp");
        let back = decode(&text);
        assert_eq!(back.len(), ports.len());
        assert!(ports.iter().all(|port| back.contains(port)));
    }

    #[test]
    fn other_text_is_no_ports() {
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
}
