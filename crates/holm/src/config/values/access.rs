//! Connections that are refused, or not: `out:tcp:25`, `in:tcp:22@203.0.113.0/24`.

use std::fmt::{self, Display};
use std::net::IpAddr;

use super::port_range;
use crate::config::types::{AccessRule, Direction, Prefix, Proto, Protocol};
use crate::config::units::Parsed;

const HELP: &str = "write in or out, then maybe :tcp, :tcp:PORT, :tcp:FIRST-LAST (or udp), or \
    :icmp, then maybe @ADDRESS or @NETWORK of the other side, as out:tcp:25 or \
    in:tcp:22@203.0.113.0/24";

/// `DIRECTION[:PROTOCOL[:PORTS]][@PEER]`.
pub fn access_rule(text: &str) -> Parsed<AccessRule> {
    let wrong = |part: &str, what: &str| Err(format!("{part:?} is not {what}; {HELP}"));
    let (rule, peer) = match text.split_once('@') {
        Some((rule, peer)) => (rule, Some(prefix(peer)?)),
        None => (text, None),
    };
    let mut parts = rule.splitn(3, ':');
    let direction = match parts.next() {
        Some("in") => Direction::In,
        Some("out") => Direction::Out,
        other => return wrong(other.unwrap_or_default(), "in or out"),
    };
    let protocol = parts.next();
    let range = parts.next().map(ports).transpose()?;
    let protocol = match protocol {
        None => None,
        Some("tcp") => Some(Protocol::Ports(Proto::Tcp, range)),
        Some("udp") => Some(Protocol::Ports(Proto::Udp, range)),
        Some("icmp") if range.is_none() => Some(Protocol::Icmp),
        Some("icmp") => return Err(format!("icmp has no ports; {HELP}")),
        Some(other) => return wrong(other, "tcp, udp or icmp"),
    };
    Ok(AccessRule { direction, protocol, peer })
}

fn ports(text: &str) -> Parsed<(u16, u16)> {
    let range = port_range(text).map_err(|what| format!("{what}; {HELP}"))?;
    Ok((*range.start(), *range.end()))
}

fn prefix(text: &str) -> Parsed<Prefix> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let wrong = || format!("{text:?} is not an address or a network, as 203.0.113.0/24; {HELP}");
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let length = match length {
        None => longest,
        Some(length) => length.parse().ok().filter(|it| *it <= longest).ok_or_else(wrong)?,
    };
    let first = first_of(address, length);
    if first != address {
        return Err(format!("{text} names an address in a network; write {first}/{length}"));
    }
    Ok(Prefix { address, length })
}

/// The first address of those that have these bits in common with an address.
pub(super) fn first_of(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            IpAddr::V6((v6.to_bits() & mask).into())
        }
    }
}

impl Display for AccessRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.direction {
            Direction::In => "in",
            Direction::Out => "out",
        })?;
        match self.protocol {
            None => {}
            Some(Protocol::Icmp) => f.write_str(":icmp")?,
            Some(Protocol::Ports(proto, ports)) => {
                f.write_str(match proto {
                    Proto::Tcp => ":tcp",
                    Proto::Udp => ":udp",
                })?;
                match ports {
                    None => {}
                    Some((first, last)) if first == last => write!(f, ":{first}")?,
                    Some((first, last)) => write!(f, ":{first}-{last}")?,
                }
            }
        }
        self.peer.map_or(Ok(()), |peer| write!(f, "@{peer}"))
    }
}

impl Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, length } = self;
        match (address, length) {
            (IpAddr::V4(_), 32) | (IpAddr::V6(_), 128) => write!(f, "{address}"),
            _ => write!(f, "{address}/{length}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_come_back_as_they_were_written() {
        for text in [
            "in",
            "out:tcp",
            "out:tcp:25",
            "in:udp:5000-5010",
            "out:icmp@192.0.2.1",
            "in@203.0.113.0/24",
            "in:tcp:22@2001:db8::/32",
            "out:udp:53@2001:db8::53",
            "out@0.0.0.0/0",
            "in@::/0",
        ] {
            assert_eq!(access_rule(text).unwrap().to_string(), text);
        }
        assert_eq!(
            access_rule("in:tcp:22-22@192.0.2.1/32").unwrap().to_string(),
            "in:tcp:22@192.0.2.1"
        );
    }

    #[test]
    fn mistakes_are_told() {
        for (text, told) in [
            ("", "\"\" is not in or out"),
            ("tcp:25", "\"tcp\" is not in or out"),
            ("out:sctp", "\"sctp\" is not tcp, udp or icmp"),
            ("out:", "\"\" is not tcp, udp or icmp"),
            ("out:tcp:", "\"\" is not a port"),
            ("out:tcp:0", "\"0\" is not a port"),
            ("out:tcp:+1", "\"+1\" is not a port"),
            ("out:tcp:1,2", "\"1,2\" is not a port"),
            ("out:tcp:1:2", "\"1:2\" is not a port"),
            ("out:tcp:9-1", "the range 9-1 runs backwards"),
            ("out:icmp:8", "icmp has no ports"),
            ("out@example.org", "\"example.org\" is not an address or a network"),
            ("out@192.0.2.1/33", "\"192.0.2.1/33\" is not an address or a network"),
            ("out@192.0.2.1/24", "192.0.2.1/24 names an address in a network; write 192.0.2.0/24"),
            ("in@2001:db8::1/64", "write 2001:db8::/64"),
        ] {
            let message = access_rule(text).unwrap_err();
            assert!(message.contains(told), "{text}: {message}");
        }
    }
}
