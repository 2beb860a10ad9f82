use std::net::IpAddr;

use holm::flows::{self, Kind};
use serde::Serialize;

use super::time::Time;

/// What a guest has had of the host's network.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Flow {
    /// The guest.
    name: String,
    /// What it is: `address` with all its ports, published `ports`, all addresses of the `host`
    /// with others, a `connection` that it has opened, or `lost`: more connections than could be
    /// recorded.
    kind: &'static str,
    /// When it began; of a connection, up to a second late.
    from: Time,
    /// When it ended; null if that is not known, as of connections, or it has not.
    until: Option<Time>,
    /// Whether it has not ended; false for connections, of which that is not known.
    running: bool,
    /// The address; null for `ports`, `host` and `lost`.
    address: Option<IpAddr>,
    /// The port of a connection; the identifier of an ICMP query.
    port: Option<u16>,
    /// The ports, as `net.publish` has them; null for other kinds.
    ports: Option<Vec<String>>,
    /// The protocol of a connection, or its number.
    protocol: Option<String>,
    /// With whom a connection was.
    peer_address: Option<IpAddr>,
    /// The other side's port.
    peer_port: Option<u16>,
}

impl From<&flows::Flow> for Flow {
    fn from(flow: &flows::Flow) -> Self {
        let mut this = Self {
            name: flow.guest.clone(),
            kind: "lost",
            from: Time::new(flow.from),
            until: flow.until.map(Time::new),
            running: flow.running,
            address: None,
            port: None,
            ports: None,
            protocol: None,
            peer_address: None,
            peer_port: None,
        };
        match &flow.kind {
            Kind::Address(address) => {
                this.kind = "address";
                this.address = Some(*address);
            }
            Kind::Ports(ports) => {
                this.kind = "ports";
                this.ports = Some(ports.clone());
            }
            Kind::Host => this.kind = "host",
            Kind::Connection { protocol, local, remote } => {
                this.kind = "connection";
                (this.address, this.port) = (Some(local.0), Some(local.1));
                this.protocol = Some(protocol_name(*protocol));
                (this.peer_address, this.peer_port) = (Some(remote.0), Some(remote.1));
            }
            Kind::Lost => {}
        }
        this
    }
}

/// A protocol, as /etc/protocols names it.
pub fn protocol_name(number: u8) -> String {
    let name = match number {
        1 => "icmp",
        6 => "tcp",
        17 => "udp",
        33 => "dccp",
        47 => "gre",
        50 => "esp",
        58 => "ipv6-icmp",
        132 => "sctp",
        136 => "udplite",
        _ => return number.to_string(),
    };
    name.to_owned()
}
