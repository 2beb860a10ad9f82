//! What programs keep in the kernel.

/// The size of `struct guest` in bytes.
pub(crate) const GUEST: u32 = 8 + 4 + 4 + 16 + 4 + 4 + 8 * 4 + 8 * 16;

/// The size of `struct port` in bytes.
pub(crate) const PORT: u32 = 8 + 6 + 2 + 4 + 4 + 8 * 4 + 8 * 16;

/// The size of `struct traffic` in bytes.
pub(crate) const TRAFFIC: u32 = 9 * 8;

/// A map. Those of native guests are shared by all of their programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Map {
    /// [`Guest`](crate::Guest) by the id of its cgroup.
    Guests,
    /// The id of a guest's cgroup by each of its addresses.
    Owners,
    /// Sockets that listen.
    Listeners,
    /// How many sockets of a guest listen, by its loopback network.
    Listening,
    /// Sockets that are counted there.
    Counted,
    /// How many sockets a guest has made, by its number.
    Held,
    /// The number of the guest that has made a socket, by the socket's cookie.
    Makers,
    /// [`Traffic`](crate::Traffic) of a guest by its number, on each CPU.
    Counters,
    /// How fast a guest may receive, by its loopback network: [`cap_value`](crate::cap_value).
    Caps,
    /// Sockets that were bound to "any", or sent something without having been bound.
    Any,
    /// Sockets of guests that share an address.
    Sharing,
    /// Unix sockets of guests that have a name or have asked one.
    Names,
    /// Sockets in network namespaces that guests have made.
    Elsewhere,
    /// At which address a client has asked.
    Asked,
    /// Has an entry, by 0, where the host tracks connections.
    Tracking,
    /// When a guest has told a client something by itself.
    Told,
    /// Addresses and ports that were asked by UDP, and are no socket's.
    Unserved,
    /// Whether a CPU looks for the socket of a datagram, by 0.
    Searching,
    /// Addresses and ports at which the host has sent a datagram to a guest.
    Hosts,
    /// What a guest may send to a port of a bridge: [`Port`](crate::Port), by 0. Each port has its
    /// own.
    Port,
    /// How fast a guest may send, by its class: [`cap_value`](crate::cap_value). Each uplink has
    /// its own.
    Departures,
}

impl Map {
    /// All of native guests.
    pub const ALL: [Self; 19] = [
        Self::Guests,
        Self::Owners,
        Self::Listeners,
        Self::Listening,
        Self::Counted,
        Self::Held,
        Self::Makers,
        Self::Counters,
        Self::Caps,
        Self::Any,
        Self::Sharing,
        Self::Names,
        Self::Elsewhere,
        Self::Asked,
        Self::Tracking,
        Self::Told,
        Self::Unserved,
        Self::Searching,
        Self::Hosts,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Guests => "guests",
            Self::Owners => "owners",
            Self::Listeners => "listeners",
            Self::Listening => "listening",
            Self::Counted => "counted",
            Self::Held => "held",
            Self::Makers => "makers",
            Self::Counters => "counters",
            Self::Caps => "caps",
            Self::Any => "any",
            Self::Sharing => "sharing",
            Self::Names => "names",
            Self::Elsewhere => "elsewhere",
            Self::Asked => "asked",
            Self::Tracking => "tracking",
            Self::Told => "told",
            Self::Unserved => "unserved",
            Self::Searching => "searching",
            Self::Hosts => "hosts",
            Self::Port => "port",
            Self::Departures => "departures",
        }
    }

    /// How many bytes a key and a value have.
    pub fn sizes(self) -> (u32, u32) {
        match self {
            Self::Guests => (8, GUEST),
            Self::Owners => (16, 8),
            Self::Listeners => (24, 8),
            Self::Listening
            | Self::Counted
            | Self::Held
            | Self::Any
            | Self::Sharing
            | Self::Names
            | Self::Tracking
            | Self::Searching
            | Self::Elsewhere => (4, 4),
            Self::Counters => (4, TRAFFIC),
            Self::Caps | Self::Departures => (4, 16),
            Self::Makers => (8, 4),
            Self::Asked => (20, 16),
            Self::Told => (20, 8),
            Self::Unserved | Self::Hosts => (24, 4),
            Self::Port => (4, PORT),
        }
    }
}
