//! Interfaces in networks of the host's: `bridge:br0`, `macvlan:eth0@192.0.2.7/24`.

use std::fmt::{self, Display};
use std::net::IpAddr;

use super::access::first_of;
use super::interface;
use crate::config::types::{Lan, LanKind};
use crate::config::units::Parsed;

const HELP: &str = "write bridge:NAME or macvlan:NAME, then maybe @ADDRESS/LENGTH, once or more, as \
    bridge:br0@192.0.2.7/24";

/// `KIND:PARENT[@ADDRESS/LENGTH]...`.
pub fn lan(text: &str) -> Parsed<Lan> {
    let mut parts = text.split('@');
    let name = parts.next().unwrap_or_default();
    let (kind, parent) = match name.split_once(':') {
        Some(("bridge", parent)) => (LanKind::Bridge, parent),
        Some(("macvlan", parent)) => (LanKind::Macvlan, parent),
        _ => return Err(format!("{name:?} is not a bridge or macvlan; {HELP}")),
    };
    let parent = interface(parent)?;
    Ok(Lan { kind, parent, addresses: parts.map(address).collect::<Parsed<_>>()? })
}

fn address(text: &str) -> Parsed<(IpAddr, u8)> {
    let wrong = || format!("{text:?} is not an address with the length of its prefix; {HELP}");
    let (address, length) = text.split_once('/').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let digits = length.bytes().all(|byte| byte.is_ascii_digit());
    let length = length.parse().ok().filter(|it| digits && (1..=longest).contains(it));
    let length = length.ok_or_else(wrong)?;
    match unusable(address, length) {
        Some(why) => Err(format!("{text} cannot be a guest's address: {why}")),
        None => Ok((address, length)),
    }
}

/// Why no interface can have an address in a network.
fn unusable(address: IpAddr, length: u8) -> Option<&'static str> {
    let link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    if address.is_unspecified() || address.is_loopback() || address.is_multicast() || link_local {
        return Some("it is not the address of one host in a network");
    }
    let IpAddr::V4(v4) = address else { return None };
    // What is behind the prefix, where there is more than two addresses (RFC 3021).
    let rest = u32::MAX.checked_shr(length.into()).filter(|_| length < 31)?;
    match v4.to_bits() & rest {
        0 => Some("it is that of the network itself"),
        all if all == rest => Some("it is the broadcast address"),
        _ => None,
    }
}

/// Whether an address is in the network of another with this length of its prefix.
pub(crate) fn same_network(one: IpAddr, other: IpAddr, length: u8) -> bool {
    one.is_ipv4() == other.is_ipv4() && first_of(one, length) == first_of(other, length)
}

impl LanKind {
    /// Its name in `net.lan`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bridge => "bridge",
            Self::Macvlan => "macvlan",
        }
    }
}

impl Display for Lan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.parent)?;
        self.addresses.iter().try_for_each(|(address, length)| write!(f, "@{address}/{length}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_come_back_as_they_were_written() {
        for text in
            ["bridge:br0", "macvlan:eth0@192.0.2.0/31", "bridge:br-lan@192.0.2.7/24@2001:db8::7/64"]
        {
            assert_eq!(lan(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (text, told) in [
            ("", "\"\" is not a bridge or macvlan"),
            ("br0", "\"br0\" is not a bridge or macvlan"),
            ("ipvlan:eth0", "\"ipvlan:eth0\" is not a bridge or macvlan"),
            ("bridge:", "\"\" cannot name a network interface"),
            ("bridge:br0@", "\"\" is not an address with the length of its prefix"),
            ("bridge:br0@192.0.2.7", "\"192.0.2.7\" is not an address with the length"),
            ("bridge:br0@192.0.2.7/33", "\"192.0.2.7/33\" is not an address with the length"),
            ("bridge:br0@192.0.2.7/0", "\"192.0.2.7/0\" is not an address with the length"),
            ("bridge:br0@192.0.2.7/+4", "\"192.0.2.7/+4\" is not an address with the length"),
            ("bridge:br0@192.0.2.0/24", "it is that of the network itself"),
            ("bridge:br0@192.0.2.255/24", "it is the broadcast address"),
            ("bridge:br0@127.0.0.2/8", "it is not the address of one host"),
            ("bridge:br0@fe80::7/64", "it is not the address of one host"),
            ("bridge:br0@dhcp/24", "\"dhcp/24\" is not an address with the length"),
        ] {
            let message = lan(text).unwrap_err();
            assert!(message.contains(told), "{text}: {message}");
        }
    }
}
