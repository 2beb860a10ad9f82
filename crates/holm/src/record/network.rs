use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use super::access::Access;
use super::ports;
use crate::config::{Lan as Settings, NetMode, Publish, same_network};

/// The network of one run of a guest: everything that it is made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "a record of facts, each independent of the others"
)]
pub struct Network {
    /// Which network the guest has.
    #[serde(with = "Mode")]
    pub mode: NetMode,
    /// The instance number of the Holm root, 1 to 27.
    pub instance: u8,
    /// The guest's context id.
    pub context: u32,
    /// Name of the host's end of the veth pair: `h`, instance number, `-`, context id.
    pub host_if: String,
    /// The guest's address.
    pub guest_v4: Ipv4Addr,
    /// The guest's IPv6 address; `None` where the host has no IPv6.
    pub guest_v6: Option<Ipv6Addr>,
    /// The guest's IPv4 gateway.
    pub gateway_v4: Ipv4Addr,
    /// The guest's IPv6 gateway.
    pub gateway_v6: Ipv6Addr,
    /// MTU in bytes.
    pub mtu: u32,
    /// Published ports.
    #[serde(with = "ports::as_text")]
    pub publish: Vec<Publish>,
    /// Whether other guests and this one may reach each other.
    pub peers: bool,
    /// Whether the guest may reach services of the host.
    #[serde(default)]
    pub host_access: bool,
    /// The guest's name servers.
    pub dns: Vec<IpAddr>,
    /// The host's addresses that are the guest's, with `net.mode = "native"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub native: Vec<IpAddr>,
    /// Those of them that the host has only while the guest runs, and the index of the interface.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<(u32, IpAddr)>,
    /// Its IPv4 address is also that of other guests, and of the host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shares_address: bool,
    /// It cannot list the sockets of the host's network namespace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hides_sockets: bool,
    /// How fast it sends through the uplink; `None` without any of the keys for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaping: Option<Shaping>,
    /// Which connections are refused.
    #[serde(default, skip_serializing_if = "Access::is_empty")]
    pub access: Access,
    /// The connections that it opens are recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flows: bool,
    /// Its interfaces in networks of the host's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lan: Vec<Lan>,
    /// Its routers there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateway: Vec<IpAddr>,
    /// Its name, if it and the others that have one resolve each other's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// An interface of a guest in a network of the host's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lan {
    /// What it is.
    #[serde(flatten)]
    pub settings: Settings,
    /// The index of the host's interface that it is on.
    pub parent_index: u32,
    /// MTU in bytes.
    pub mtu: u32,
    /// Its Ethernet address.
    pub ethernet: [u8; 6],
}

impl Lan {
    /// Whether an address is in the network of one of its own.
    pub(crate) fn reaches(&self, other: IpAddr) -> bool {
        let mut addresses = self.settings.addresses.iter();
        addresses.any(|(address, length)| same_network(*address, other, *length))
    }
}

/// How fast a guest sends through the uplink (`VServer`'s network `QoS`, OLS 2007, 2.2.5), in bits
/// in a second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shaping {
    /// The index of the uplink.
    pub uplink: u32,
    /// The uplink's name.
    pub uplink_name: String,
    /// The uplink's rate.
    pub uplink_rate: u64,
    /// What it can always send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve: Option<u64>,
    /// Its weight against others that send more than is reserved for them; `None` if it does not,
    /// or has a cap alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<u32>,
    /// What it sends at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "NetMode", rename_all = "lowercase")]
enum Mode {
    Private,
    None,
    Host,
    Native,
}

/// Interface indexes from here on are those of private guests' veth pairs: far above what kernels
/// count up to.
pub(crate) const FIRST_HOST_INDEX: u32 = 10_000_000;

/// Interface index of the host's end of a guest's veth pair. Fixed, so that one exchange with the
/// kernel makes the pair and its addresses and routes, and because CRIU restores a guest's
/// interface with its index.
pub(crate) fn host_index(instance: u8, context: u32) -> u32 {
    FIRST_HOST_INDEX + u32::from(instance) * 100_000 + context
}

impl Network {
    /// Interface index of the host's end.
    pub(crate) fn host_index(&self) -> u32 {
        host_index(self.instance, self.context)
    }

    /// Interface index of `eth0`.
    pub(crate) fn guest_index(&self) -> u32 {
        self.host_index() + 50_000
    }

    /// The guest's addresses.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let v6 = self.guest_v6.map(IpAddr::V6);
        std::iter::once(IpAddr::V4(self.guest_v4)).chain(v6)
    }

    /// All addresses that are the guest's: IPv4 first, or in the order of `net.address` of a native
    /// one, then those that are set in networks of the host's.
    pub fn own_addresses(&self) -> Vec<IpAddr> {
        let mut own = match self.mode {
            NetMode::Private => self.addresses().collect(),
            NetMode::Native => self.native.clone(),
            NetMode::Host | NetMode::None => Vec::new(),
        };
        let lan = self.lan.iter().flat_map(|lan| &lan.settings.addresses);
        own.extend(lan.map(|(address, _)| *address));
        own
    }

    /// Its IPv4 address if that is also other guests'.
    pub(crate) fn shared_address(&self) -> Option<IpAddr> {
        self.native.iter().copied().find(|address| self.shares_address && address.is_ipv4())
    }

    fn mac(&self, end: u8) -> [u8; 6] {
        let [_, _, high, low] = self.context.to_be_bytes();
        [0x02, 0x68, end, self.instance, high, low]
    }

    /// Ethernet address of the host's end.
    pub fn host_mac(&self) -> [u8; 6] {
        self.mac(0x68)
    }

    /// Ethernet address of `eth0`, the same at every start.
    pub fn guest_mac(&self) -> [u8; 6] {
        self.mac(0x67)
    }

    /// The link-local address that the kernel would derive from [`Network::guest_mac`].
    pub fn guest_link_local(&self) -> Ipv6Addr {
        let mac = self.guest_mac();
        let group = |high: u8, low: u8| u16::from_be_bytes([high, low]);
        let last = [
            group(mac[0] ^ 2, mac[1]),
            group(mac[2], 0xff),
            group(0xfe, mac[3]),
            group(mac[4], mac[5]),
        ];
        Ipv6Addr::new(0xfe80, 0, 0, 0, last[0], last[1], last[2], last[3])
    }
}
