use holm::net::LanTraffic;
use holm::record::{self, Network};
use serde::Serialize;

/// An interface in a network of the host's.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Lan {
    /// Its name in the guest.
    interface: String,
    /// `bridge` or `macvlan`.
    kind: &'static str,
    /// The host's interface that it is on.
    parent: String,
    /// Its other end on the host, a port of the bridge; null for a macvlan.
    host_interface: Option<String>,
    /// Its Ethernet address.
    ethernet_address: String,
    /// The addresses that are set, each with the length of its network's prefix.
    addresses: Vec<String>,
    /// What passed there in this run; null for a macvlan, which is not counted.
    traffic: Option<PortTraffic>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PortTraffic {
    /// Packets that the guest has sent.
    sent_packets: u64,
    /// Their bytes, with the Ethernet header.
    sent_bytes: u64,
    /// Packets that it has received.
    received_packets: u64,
    /// Their bytes.
    received_bytes: u64,
    /// Packets that were dropped because it may not send them; null if nobody looks any more.
    dropped_packets: Option<u64>,
}

/// The interfaces of a guest's network; `traffic` may be that of none.
pub fn interfaces(network: &Network, traffic: &[Option<LanTraffic>]) -> Vec<Lan> {
    let interface = |(at, lan): (usize, &record::Lan)| Lan {
        interface: network.lan_name(at),
        kind: lan.settings.kind.name(),
        parent: lan.settings.parent.clone(),
        host_interface: network.lan_port(at),
        ethernet_address: ethernet(lan.ethernet),
        addresses: lan.settings.addresses.iter().map(|(ip, bits)| format!("{ip}/{bits}")).collect(),
        traffic: traffic.get(at).and_then(Option::as_ref).map(|it| PortTraffic {
            sent_packets: it.sent.packets,
            sent_bytes: it.sent.bytes,
            received_packets: it.received.packets,
            received_bytes: it.received.bytes,
            dropped_packets: it.dropped,
        }),
    };
    network.lan.iter().enumerate().map(interface).collect()
}

/// An Ethernet address as text.
pub fn ethernet(address: [u8; 6]) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}
