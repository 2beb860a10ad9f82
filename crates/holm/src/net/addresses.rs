//! The addresses and names that are computed from an instance number and a context id.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::record::Network;

/// The IPv4 gateway of every guest: the host's end of its veth pair.
pub const GATEWAY_V4: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 1);
/// The IPv6 gateway of every guest.
pub const GATEWAY_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
/// The highest context id that has addresses.
pub const ADDRESS_MAX: u32 = 1023;

/// The interface group of guests that reach other guests, in every instance. The ruleset matches
/// guests' interfaces by group.
pub(super) const GROUP_PEERS: u32 = 0x686f;
/// The group of guests that neither reach nor are reached by other guests.
pub(super) const GROUP_ISOLATED: u32 = 0x6861;
/// As [`GROUP_PEERS`], and they reach services of the host.
pub(super) const GROUP_PEERS_AND_HOST: u32 = 0x6870;
/// As [`GROUP_ISOLATED`], and they reach services of the host.
pub(super) const GROUP_ISOLATED_AND_HOST: u32 = 0x6862;

/// Name of the host's end of a guest's veth pair.
pub(super) fn host_interface(instance: u8, context: u32) -> String {
    format!("{}{context}", host_prefix(instance))
}

/// The prefix of the names of an instance's interfaces.
pub(super) fn host_prefix(instance: u8) -> String {
    format!("h{instance}-")
}

/// The subnets of an instance: the first address of its IPv4 /16 and of its IPv6 /64.
pub(super) fn subnets(instance: u8) -> (Ipv4Addr, Ipv6Addr) {
    (
        Ipv4Addr::new(10, 96 + instance, 0, 0),
        Ipv6Addr::new(0xfd00, 0x686f, 0x6c6d, instance.into(), 0, 0, 0, 0),
    )
}

/// The context id whose guest has this address of an instance, unless it is set to another.
pub fn context_of(instance: u8, address: IpAddr) -> Option<u32> {
    let (v4, v6) = subnets(instance);
    let context = match address {
        IpAddr::V4(address) => address.to_bits().checked_sub(v4.to_bits())?,
        IpAddr::V6(address) => u32::try_from(address.to_bits().checked_sub(v6.to_bits())?).ok()?,
    };
    (1..=ADDRESS_MAX).contains(&context).then_some(context)
}

impl Network {
    /// The group of the guest's interface.
    pub(super) fn group(&self) -> u32 {
        match (self.peers, self.host_access) {
            (true, false) => GROUP_PEERS,
            (false, false) => GROUP_ISOLATED,
            (true, true) => GROUP_PEERS_AND_HOST,
            (false, true) => GROUP_ISOLATED_AND_HOST,
        }
    }
}
