//! What a private guest has sent and received: its interface and the ruleset count.

use super::elements;
use crate::net::error::Error;
use crate::net::link;
use crate::net::netlink::Socket;
use crate::net::traffic::{Reason, Traffic};
use crate::record::Network;

/// The sets of the ruleset that count what was dropped or refused, and why it was.
const REASONS: [(&str, Reason); 4] = [
    ("foreign_source", Reason::ForeignSource),
    ("too_many_connections", Reason::TooManyConnections),
    ("isolated_guest", Reason::IsolatedGuest),
    ("host_service", Reason::HostService),
];

/// What a guest that runs has sent and received; `None` if its interface is gone.
pub fn traffic(network: &Network) -> Result<Option<Traffic>, Error> {
    // What the host's end has received, the guest has sent.
    let Some((sent, received)) = link::counters(&Socket::route()?, &network.host_if)? else {
        return Ok(None);
    };
    let netfilter = Socket::netfilter()?;
    let key = network.host_index().to_ne_bytes();
    let count = |set| elements::count(&netfilter, network.instance, set, &key);
    let mut dropped = Vec::new();
    for (set, reason) in REASONS {
        dropped.push((reason, count(set)?));
    }
    let (opened, accepted) = (count("opened")?, count("accepted")?);
    Ok(Some(Traffic { sent, received, opened, accepted, dropped }))
}
