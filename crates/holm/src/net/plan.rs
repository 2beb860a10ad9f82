//! From a guest's `net.*` keys and context id to addresses, names and sizes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Error, dns, link, netlink, port, publish};
use crate::config::{Net, NetMode};
use crate::record::Network;
use holm_proto::Lease;

/// Where a guest's IPv4 default route leads: the host's end of its interface, the same in every guest.
pub const GATEWAY_V4: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 1);
/// Where a guest's IPv6 default route leads.
pub const GATEWAY_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
/// The highest context id that has addresses.
pub const ADDRESS_MAX: u32 = 1023;

/// Interface groups of all guests of all instances: rules tell a guest's interface by them.
pub(super) const GROUP_OPEN: u32 = 0x686f;
/// Those that neither reach nor are reached by other guests.
pub(super) const GROUP_ALONE: u32 = 0x6861;

/// MTU without an uplink, bytes.
const MTU_DEFAULT: u32 = 1500;
/// Below this there is no IPv6 (RFC 8200), bytes.
const MTU_MIN: u32 = 1280;

/// Name of the host's end of a guest's interface.
pub(super) fn host_interface(instance: u8, context: u32) -> String {
    format!("{}{context}", host_prefix(instance))
}

/// What the names of an instance's interfaces begin with.
pub(super) fn host_prefix(instance: u8) -> String {
    format!("h{instance}-")
}

/// The pool of an instance: its first IPv4 address (of a /16) and IPv6 address (of a /64).
pub(super) fn pool(instance: u8) -> (Ipv4Addr, Ipv6Addr) {
    (
        Ipv4Addr::new(10, 96 + instance, 0, 0),
        Ipv6Addr::new(0xfd00, 0x686f, 0x6c6d, instance.into(), 0, 0, 0, 0),
    )
}

/// Plans a guest's network and checks that its published ports are free.
///
/// `instance` is 1 to 27. The resolvers, the uplink's MTU and whether there is IPv6 are the host's of this moment.
pub fn plan(instance: u8, context: u32, net: &Net) -> Result<Network, Error> {
    let mut plan = addresses(instance, context, net)?;
    plan.dns = if net.dns.is_empty() { dns::host_servers() } else { net.dns.clone() };
    if net.mode == NetMode::Private {
        let socket = netlink::Socket::route()?;
        plan.mtu = link::uplink_mtu(&socket)?.unwrap_or(MTU_DEFAULT).clamp(MTU_MIN, 65535);
        if !has_ipv6() {
            plan.guest_v6 = None;
        }
        let length = publish::Published::of(&plan).alias().len();
        if length > publish::ALIAS_MAX {
            return Err(Error::TooManyPorts { length });
        }
        port::check(&socket, &plan)?;
    }
    Ok(plan)
}

fn has_ipv6() -> bool {
    std::fs::read("/proc/sys/net/ipv6/conf/default/disable_ipv6")
        .is_ok_and(|text| text.starts_with(b"0"))
}

/// The part that asks the host nothing.
fn addresses(instance: u8, context: u32, net: &Net) -> Result<Network, Error> {
    if context == 0 || context > ADDRESS_MAX {
        return Err(Error::PoolEmpty { second: 96 + u16::from(instance), context });
    }
    let (v4, v6) = pool(instance);
    let mut plan = Network {
        mode: net.mode,
        instance,
        context,
        host_if: host_interface(instance, context),
        guest_v4: Ipv4Addr::from_bits(v4.to_bits() | context),
        guest_v6: Some(Ipv6Addr::from_bits(v6.to_bits() | u128::from(context))),
        gateway_v4: GATEWAY_V4,
        gateway_v6: GATEWAY_V6,
        mtu: MTU_DEFAULT,
        publish: if net.mode == NetMode::Private { net.publish.clone() } else { Vec::new() },
        peers: net.peers,
        dns: Vec::new(),
    };
    for address in &net.address {
        if let Some(why) = unfit(*address) {
            return Err(Error::BadAddress { address: *address, why });
        }
        match *address {
            IpAddr::V4(v4) => plan.guest_v4 = v4,
            IpAddr::V6(v6) => plan.guest_v6 = Some(v6),
        }
    }
    Ok(plan)
}

fn unfit(address: IpAddr) -> Option<&'static str> {
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6.to_ipv4_mapped().is_some(),
    };
    match address {
        _ if address.is_unspecified() => Some("it means \"any\""),
        _ if address.is_loopback() => Some("it is a loopback address"),
        _ if address.is_multicast() => Some("it is a multicast address"),
        _ if link_local => Some("it is valid on one link only"),
        _ => None,
    }
}

impl Network {
    /// What a guest is told that asks by DHCP, router solicitation or `DHCPv6`. Of the name servers, three of each family.
    pub fn lease(&self) -> Lease {
        let mut lease = Lease {
            host_mac: self.host_mac(),
            guest_v4: self.guest_v4.octets(),
            gateway_v4: self.gateway_v4.octets(),
            guest_v6: self.guest_v6.map_or([0; 16], |v6| v6.octets()),
            gateway_v6: if self.guest_v6.is_some() { self.gateway_v6.octets() } else { [0; 16] },
            mtu: u16::try_from(self.mtu).unwrap_or(u16::MAX),
            ..Lease::default()
        };
        let v4 =
            self.dns.iter().filter_map(|ip| if let IpAddr::V4(v4) = ip { Some(v4) } else { None });
        let v6 =
            self.dns.iter().filter_map(|ip| if let IpAddr::V6(v6) = ip { Some(v6) } else { None });
        lease.dns_v4.iter_mut().zip(v4).for_each(|(slot, ip)| *slot = ip.octets());
        lease.dns_v6.iter_mut().zip(v6).for_each(|(slot, ip)| *slot = ip.octets());
        lease
    }

    pub(super) fn group(&self) -> u32 {
        if self.peers { GROUP_OPEN } else { GROUP_ALONE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(address: &[&str]) -> Net {
        Net {
            address: address.iter().map(|text| text.parse().unwrap()).collect(),
            ..Net::default()
        }
    }

    #[test]
    fn addresses_come_from_the_context_id() {
        let plan = addresses(3, 517, &net(&[])).unwrap();
        assert_eq!(plan.guest_v4, Ipv4Addr::new(10, 99, 2, 5));
        assert_eq!(plan.guest_v6, Some("fd00:686f:6c6d:3::205".parse().unwrap()));
        assert_eq!(plan.host_if, "h3-517");
        assert_eq!(plan.guest_link_local(), "fe80::68:67ff:fe03:205".parse::<Ipv6Addr>().unwrap());
    }

    #[test]
    fn set_addresses_win_one_by_one() {
        let plan = addresses(1, 1, &net(&["203.0.113.9"])).unwrap();
        assert_eq!(plan.guest_v4, Ipv4Addr::new(203, 0, 113, 9));
        assert_eq!(plan.guest_v6, Some("fd00:686f:6c6d:1::1".parse().unwrap()));
    }

    #[test]
    fn addresses_no_guest_can_have_are_refused() {
        for bad in [
            "127.0.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "169.254.1.1",
            "255.255.255.255",
            "::1",
            "::",
            "ff02::1",
            "fe80::2",
            "::ffff:10.0.0.1",
        ] {
            assert!(
                matches!(addresses(1, 1, &net(&[bad])), Err(Error::BadAddress { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn the_pool_ends() {
        assert!(addresses(1, ADDRESS_MAX, &net(&[])).is_ok());
        let error = addresses(1, ADDRESS_MAX + 1, &net(&[])).unwrap_err();
        assert!(error.to_string().contains("10.97.0.0/16"), "{error}");
        assert!(matches!(addresses(1, 0, &net(&[])), Err(Error::PoolEmpty { .. })));
    }

    #[test]
    fn a_plan_survives_json() {
        let publish = vec![crate::config::Publish {
            host_ip: None,
            host_port: 80,
            guest_port: 8080,
            proto: crate::config::Proto::Tcp,
        }];
        let plan = addresses(1, 7, &Net { publish, ..Net::default() }).unwrap();
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Network>(&text).unwrap(), plan);
    }
}
