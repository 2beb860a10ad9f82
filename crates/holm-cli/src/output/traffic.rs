use holm::guest::Summary;
use holm::net::{self, Counted, Reason};
use serde::Serialize;

/// What a guest has sent and received in a run, within itself excepted.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Traffic {
    /// Packets that it has sent; of TCP, as the stack hands them to the network card.
    sent_packets: u64,
    /// Their bytes: with the Ethernet header of a private guest, from the IP header on of a native
    /// one.
    sent_bytes: u64,
    /// Packets that it has received.
    received_packets: u64,
    /// Their bytes.
    received_bytes: u64,
    /// Connections that it has opened: of a private guest all that the host tracks, of a native one
    /// those of TCP.
    opened_connections: u64,
    /// Connections that others have opened to it.
    accepted_connections: u64,
    /// Packets that were dropped or refused; null for what does not happen in its mode.
    dropped_packets: Dropped,
}

#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Dropped {
    /// From an address that is not the guest's.
    foreign_source: Option<u64>,
    /// To an address that is not the guest's.
    foreign_destination: Option<u64>,
    /// Received faster than `net.cap` of a native guest says.
    over_cap: Option<u64>,
    /// Of a connection more than a guest may have.
    too_many_connections: Option<u64>,
    /// To another guest, where one of the two has `net.peers = false`.
    isolated_guest: Option<u64>,
    /// To a service of the host, without `net.host-access`.
    host_service: Option<u64>,
}

impl From<&net::Traffic> for Traffic {
    fn from(traffic: &net::Traffic) -> Self {
        let mut dropped = Dropped::default();
        for (reason, packets) in &traffic.dropped {
            let place = match reason {
                Reason::ForeignSource => &mut dropped.foreign_source,
                Reason::ForeignDestination => &mut dropped.foreign_destination,
                Reason::OverCap => &mut dropped.over_cap,
                Reason::TooManyConnections => &mut dropped.too_many_connections,
                Reason::IsolatedGuest => &mut dropped.isolated_guest,
                Reason::HostService => &mut dropped.host_service,
            };
            *place = Some(*packets);
        }
        Self {
            sent_packets: traffic.sent.packets,
            sent_bytes: traffic.sent.bytes,
            received_packets: traffic.received.packets,
            received_bytes: traffic.received.bytes,
            opened_connections: traffic.opened,
            accepted_connections: traffic.accepted,
            dropped_packets: dropped,
        }
    }
}

/// An item of `net.deny` or `net.allow`, and what it has matched.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccessRule {
    /// The item.
    rule: String,
    /// Whether it is of `net.deny`; otherwise it is an exception.
    denies: bool,
    /// Packets that it has matched.
    packets: u64,
    /// Their bytes, from the IP header on.
    bytes: u64,
}

impl From<&Counted> for AccessRule {
    fn from(counted: &Counted) -> Self {
        Self {
            rule: counted.rule.to_string(),
            denies: counted.denies,
            packets: counted.matched.packets,
            bytes: counted.matched.bytes,
        }
    }
}

/// What a running guest uses, and has used since its start.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Stat {
    /// Its name.
    name: String,
    /// When this was read, in microseconds since 1970.
    at_usec: u64,
    /// CPU time since its start in microseconds.
    cpu_usec: u64,
    /// Memory in use now; null if the host does not count it.
    memory_bytes: Option<u64>,
    /// Processes and threads now; null if the host does not count them.
    pids: Option<u64>,
    /// What it has sent and received since its start; null if nobody counts that.
    traffic: Option<Traffic>,
}

impl Stat {
    /// Of a guest that runs; `at_usec` is when it was looked at.
    pub fn new(guest: &Summary, at_usec: u64) -> Self {
        let usage = guest.usage.unwrap_or_default();
        Self {
            name: guest.name.to_string(),
            at_usec,
            cpu_usec: usage.cpu_usec,
            memory_bytes: usage.memory,
            pids: usage.pids,
            traffic: guest.traffic.as_ref().map(Traffic::from),
        }
    }
}
