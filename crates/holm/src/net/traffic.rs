//! What a guest has sent and received in a run.

/// Packets, and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Volume {
    /// Packets as the stack handles them: of TCP, what a network card then cuts into several.
    pub packets: u64,
    /// Their bytes: from the IP header on of native guests, with the Ethernet header of private
    /// ones.
    pub bytes: u64,
}

/// What a guest has sent and received since its start, within itself excepted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Traffic {
    /// What it has sent.
    pub sent: Volume,
    /// What it has received.
    pub received: Volume,
    /// Connections that it has opened: of native guests those of TCP that were established, of
    /// private ones all that the host's connection tracking has seen, also UDP and ping.
    pub opened: u64,
    /// Connections that others have opened to it, in the same way.
    pub accepted: u64,
    /// Packets of the guest, or to it, that were dropped or refused, by reason.
    pub dropped: Vec<(Reason, u64)>,
}

/// What passed an interface in a network of the host's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanTraffic {
    /// What the guest has sent there.
    pub sent: Volume,
    /// What it has received.
    pub received: Volume,
    /// Packets that were dropped because the guest may not send them: from addresses that are not
    /// its own, or as a router or DHCP server; `None` if the program that looks was removed.
    pub dropped: Option<u64>,
}

/// Why a packet was dropped or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It was sent from an address that is not the guest's.
    ForeignSource,
    /// It was sent to a native guest at an address that is not the guest's.
    ForeignDestination,
    /// It came to a native guest faster than `net.cap` says.
    OverCap,
    /// It would have opened more connections than a guest may have.
    TooManyConnections,
    /// It was for another guest, and one of the two has `net.peers = false`.
    IsolatedGuest,
    /// It was for a service of the host, without `net.host-access`.
    HostService,
}
