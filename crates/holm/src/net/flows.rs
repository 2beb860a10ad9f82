//! What a guest with `net.flows` opens, as the kernel tells its monitor.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;

use super::error::Error;
use super::netlink::{Batch, Refused, Socket};
use super::nflog::{CHAIN_NAME, CHAIN_TABLE, Kind};
use super::nft::{self, INET};
use super::request::Request;
use crate::record::Network;

/// The chain of a table in which connections are told.
pub const CHAIN: &str = "recorded";

const GETCHAIN: u16 = 0x0a04;
/// Bytes that wait for the monitor: thousands of connections.
const WAITING: usize = 1 << 20;

/// The socket that tells the connections which a guest opens, and its group.
pub fn listen(network: &Network) -> Result<(OwnedFd, u16), Error> {
    let group = Kind::Flows.group(network.instance, network.context)?;
    match Kind::Flows.listen(group) {
        // The capability for it is there: the guest's interface has just been made.
        Err(Refused { errno: Errno::PERM | Errno::BUSY, .. }) => Err(Error::FlowsTaken { group }),
        listening => {
            let socket = listening?;
            // A smaller one only loses some of a flood.
            let _ = set_socket_recv_buffer_size_force(&socket, WAITING);
            Ok((socket, group))
        }
    }
}

/// The group of a guest whose connections are to be recorded.
pub fn group_of(network: &Network) -> Result<Option<u16>, Error> {
    let group = network.flows.then(|| Kind::Flows.group(network.instance, network.context));
    Ok(group.transpose()?)
}

/// Has nft add [`CHAIN`] to a table, if it is missing: without one no packet passes it.
pub fn ensure_chain(netfilter: &Socket, table: &str, script: &str) -> Result<(), Error> {
    let mut batch = Batch::default();
    batch
        .message(Request::RecordFlows, GETCHAIN, 0, &INET)
        .text(CHAIN_TABLE, table)
        .text(CHAIN_NAME, CHAIN);
    if nft::found(netfilter, &batch, |_| {})? { Ok(()) } else { nft::load(table, script) }
}
