//! What a guest has sent to the ports of bridges, and received.

use holm_bpf::{PORT_PROGRAM, Port};

use super::names::host_index;
use super::port::fail;
use crate::net::classifier::{self, Packets};
use crate::net::error::Error;
use crate::net::link;
use crate::net::netlink::Socket;
use crate::net::traffic::LanTraffic;
use crate::record::Network;

/// What passed each interface of a guest that runs, in their order; `None` for a macvlan, which is
/// the guest's alone, so that nobody outside counts there.
pub fn traffic(network: &Network) -> Result<Vec<Option<LanTraffic>>, Error> {
    if network.lan.is_empty() {
        return Ok(Vec::new());
    }
    let socket = Socket::route()?;
    let each = |at: usize| {
        let Some(name) = network.lan_port(at) else { return Ok(None) };
        // What the host's end has received, the guest has sent.
        let Some((sent, received)) = link::counters(&socket, &name)? else { return Ok(None) };
        let fail = |source| fail(name.clone(), source);
        let index = host_index(network, at);
        let map =
            classifier::map(&socket, index, Packets::Received, &PORT_PROGRAM).map_err(fail)?;
        let value = map.map_or(Ok(None), |map| map.get(&[0; 4])).map_err(fail)?;
        let dropped = value.map(|value| Port::dropped(&value));
        Ok(Some(LanTraffic { sent, received, dropped }))
    };
    (0..network.lan.len()).map(each).collect()
}
