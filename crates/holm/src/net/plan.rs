//! Planning: a guest's addresses, from its `net.*` keys and context id.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::addresses::{ADDRESS_MAX, GATEWAY_V4, GATEWAY_V6, host_interface, subnets};
use super::error::Error;
use crate::config::{Net, NetMode};
use crate::record::{Access, Network};

/// The MTU without an uplink, in bytes.
pub const MTU_DEFAULT: u32 = 1500;

/// The part of a plan that is the same in every mode and does not depend on the host. It has no
/// published ports yet.
pub fn plan_addresses(instance: u8, context: u32, net: &Net) -> Result<Network, Error> {
    if context == 0 || context > ADDRESS_MAX {
        return Err(Error::AddressesExhausted { second: 96 + u16::from(instance), context });
    }
    let (v4, v6) = subnets(instance);
    let mut network = Network {
        mode: net.mode,
        instance,
        context,
        host_if: host_interface(instance, context),
        guest_v4: Ipv4Addr::from_bits(v4.to_bits() | context),
        guest_v6: Some(Ipv6Addr::from_bits(v6.to_bits() | u128::from(context))),
        gateway_v4: GATEWAY_V4,
        gateway_v6: GATEWAY_V6,
        mtu: MTU_DEFAULT,
        publish: Vec::new(),
        peers: net.peers,
        host_access: net.host_access,
        dns: Vec::new(),
        native: Vec::new(),
        added: Vec::new(),
        shares_address: net.share_address,
        hides_sockets: net.hide_sockets,
        shaping: None,
        access: Access::of(net),
        flows: net.flows,
        lan: Vec::new(),
        gateway: net.gateway.clone(),
        name: None,
    };
    if net.mode == NetMode::Native {
        // They are the host's: `native` looks whether it has them.
        network.native.clone_from(&net.address);
        return Ok(network);
    }
    for address in &net.address {
        check_address(*address)?;
        match *address {
            IpAddr::V4(v4) => network.guest_v4 = v4,
            IpAddr::V6(v6) => network.guest_v6 = Some(v6),
        }
    }
    Ok(network)
}

/// Refuses an address that no guest can have.
pub fn check_address(address: IpAddr) -> Result<(), Error> {
    unusable(address).map_or(Ok(()), |why| Err(Error::BadAddress { address, why }))
}

/// The reason why no guest can have an address.
fn unusable(address: IpAddr) -> Option<&'static str> {
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
        let plan = plan_addresses(3, 517, &net(&[])).unwrap();
        assert_eq!(plan.guest_v4, Ipv4Addr::new(10, 99, 2, 5));
        assert_eq!(plan.guest_v6, Some("fd00:686f:6c6d:3::205".parse().unwrap()));
        assert_eq!(plan.host_if, "h3-517");
        assert_eq!(plan.guest_link_local(), "fe80::68:67ff:fe03:205".parse::<Ipv6Addr>().unwrap());
    }

    #[test]
    fn set_addresses_win_one_by_one() {
        let plan = plan_addresses(1, 1, &net(&["203.0.113.9"])).unwrap();
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
                matches!(plan_addresses(1, 1, &net(&[bad])), Err(Error::BadAddress { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn the_pool_ends() {
        assert!(plan_addresses(1, ADDRESS_MAX, &net(&[])).is_ok());
        let error = plan_addresses(1, ADDRESS_MAX + 1, &net(&[])).unwrap_err();
        assert!(error.to_string().contains("10.97.0.0/16"), "{error}");
        assert!(matches!(plan_addresses(1, 0, &net(&[])), Err(Error::AddressesExhausted { .. })));
    }

    #[test]
    fn a_plan_survives_json() {
        let publish = vec![crate::config::Publish {
            host_ip: None,
            host_port: 80,
            guest_port: 8080,
            proto: crate::config::Proto::Tcp,
        }];
        let plan = plan_addresses(1, 7, &Net { publish, ..Net::default() }).unwrap();
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Network>(&text).unwrap(), plan);
    }
}
