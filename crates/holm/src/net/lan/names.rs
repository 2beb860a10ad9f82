//! The names and indexes of interfaces.

use crate::config::{LanKind, NetMode};
use crate::record::Network;

/// What the names of the host's ends of an instance begin with.
pub fn prefix(instance: u8) -> String {
    format!("lan{instance}-")
}

/// The name of the host's end of an interface.
pub fn host_name(network: &Network, at: usize) -> String {
    format!("{}{}-{at}", prefix(network.instance), network.context)
}

impl Network {
    /// Whether the guest also has a private network.
    pub(super) fn has_private_beside(&self) -> bool {
        self.mode == NetMode::Private
    }

    /// The name in the guest of the interface at this place of [`Network::lan`].
    pub fn lan_name(&self, at: usize) -> String {
        format!("eth{}", at + usize::from(self.has_private_beside()))
    }

    /// The name of its other end on the host; `None` for a macvlan, which has none.
    pub fn lan_port(&self, at: usize) -> Option<String> {
        let is_port = self.lan.get(at).is_some_and(|lan| lan.settings.kind == LanKind::Bridge);
        is_port.then(|| host_name(self, at))
    }
}

/// The index of the host's end of an interface: above those of private guests' interfaces.
pub fn host_index(network: &Network, at: usize) -> u32 {
    const APART: u32 = 10_000_000;
    // There are few of them.
    network.host_index() + APART * (1 + u32::try_from(at).unwrap_or_default())
}

/// The index of an interface in the guest.
pub fn guest_index(network: &Network, at: usize) -> u32 {
    host_index(network, at) + (network.guest_index() - network.host_index())
}
