//! The lease of a private guest.

use std::net::IpAddr;

use holm_proto::Lease;

use crate::record::Network;

impl Network {
    /// What the responder offers by DHCP, `DHCPv6` and router advertisement. A lease has room for
    /// three name servers of each family.
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
}
