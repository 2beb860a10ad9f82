//! What a guest with `net.flows` opens, as the kernel tells its monitor: by the log of nftables
//! (NFLOG), with a group for each guest.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;

use super::error::Error;
use super::netlink::{Batch, CREATE, Refused, Socket};
use super::nft::{self, DESTROYSETELEM, ELEM_DATA, GETSETELEM, INET, NEWSETELEM, Place};
use super::request::Request;
use crate::record::Network;

/// The chain of a table in which connections are told.
pub const CHAIN: &str = "recorded";

const NEWCHAIN: u16 = 0x0a03;
const GETCHAIN: u16 = 0x0a04;
const NEWRULE: u16 = 0x0a06;
// Without an error if there is nothing (from Linux 6.3 on).
const DESTROYCHAIN: u16 = 0x0a1b;

/// How many groups an instance has, one for each context id: as many as it has addresses.
const GROUPS: u16 = 1024;

/// Bytes of a packet that the monitor gets: the longest IPv4 header, and ports behind it.
const COPIED: u32 = 68;
/// Bytes of what the kernel sends at a time.
const DATAGRAM: u32 = 4096;
/// How many packets it waits for, and how long, in hundredths of a second.
const PACKETS: u32 = 100;
const LONGEST: u32 = 100;
/// Bytes that wait for the monitor: thousands of connections.
const WAITING: usize = 1 << 20;

/// The number of a guest's group.
fn group(instance: u8, context: u32) -> Result<u16, Error> {
    let group = u32::from(instance) * u32::from(GROUPS) + context;
    // Context ids end where addresses do.
    let refused = Refused { request: Request::BindFlows, errno: Errno::RANGE };
    u16::try_from(group).map_err(|_| refused.into())
}

/// The socket that tells the connections which a guest opens, and its group.
pub fn listen(network: &Network) -> Result<(OwnedFd, u16), Error> {
    let group = group(network.instance, network.context)?;
    let socket = Socket::netfilter()?;
    let mut batch = Batch::default();
    bind(&mut batch, group);
    match socket.execute(&mut batch) {
        // The capability for it is there: the guest's interface has just been made.
        Err(Refused { errno: Errno::PERM | Errno::BUSY, .. }) => {
            return Err(Error::FlowsTaken { group });
        }
        bound => bound?,
    }
    let socket = socket.into_fd();
    // A smaller one only loses some of a flood.
    let _ = set_socket_recv_buffer_size_force(&socket, WAITING);
    Ok((socket, group))
}

/// The group of a guest whose connections are to be recorded.
pub fn group_of(network: &Network) -> Result<Option<u16>, Error> {
    network.flows.then(|| group(network.instance, network.context)).transpose()
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

/// Where the rule is that tells the connections of a guest.
pub struct Rule<'a> {
    /// The table, which has a map `flows` that packets of connections are looked up in.
    pub table: &'a str,
    /// The guest's key there.
    pub key: &'a [u8],
    pub context: u32,
}

impl Rule<'_> {
    /// Has the connections told to a group that the guest opens from now on, or to none. What
    /// another guest with its context id has left goes.
    pub fn begin(&self, batch: &mut Batch, group: Option<u16>) {
        self.remove(batch);
        if let Some(group) = group {
            self.add(batch, group);
        }
    }

    /// Whether it is there.
    pub fn is_there(&self, netfilter: &Socket) -> Result<bool, Error> {
        let mut batch = Batch::default();
        self.element(&mut batch, Request::RecordFlows, GETSETELEM, |_| {});
        nft::found(netfilter, &batch, |_| {})
    }

    /// Adds a chain with a rule that logs, and the element that leads to it.
    fn add(&self, batch: &mut Batch, group: u16) {
        const RULE_TABLE: u16 = 1;
        const RULE_CHAIN: u16 = 2;
        const RULE_EXPRESSIONS: u16 = 4;
        const EXPRESSION: u16 = 1;
        const EXPRESSION_NAME: u16 = 1;
        const EXPRESSION_DATA: u16 = 2;
        const LOG_GROUP: u16 = 1;
        const VERDICT: u16 = 2;
        const VERDICT_CODE: u16 = 1;
        const VERDICT_CHAIN: u16 = 2;
        const JUMP: i32 = -3;
        let chain = chain(self.context);
        batch
            .message(Request::RecordFlows, NEWCHAIN, CREATE, &INET)
            .text(CHAIN_TABLE, self.table)
            .text(CHAIN_NAME, &chain);
        batch
            .message(Request::RecordFlows, NEWRULE, CREATE, &INET)
            .text(RULE_TABLE, self.table)
            .text(RULE_CHAIN, &chain)
            .nest(RULE_EXPRESSIONS, |batch| {
                batch.nest(EXPRESSION, |batch| {
                    batch.text(EXPRESSION_NAME, "log").nest(EXPRESSION_DATA, |batch| {
                        batch.attr(LOG_GROUP, &group.to_be_bytes());
                    });
                });
            });
        self.element(batch, Request::RecordFlows, NEWSETELEM, |batch| {
            batch.nest(ELEM_DATA, |batch| {
                batch.nest(VERDICT, |batch| {
                    batch.attr(VERDICT_CODE, &JUMP.to_be_bytes()).text(VERDICT_CHAIN, &chain);
                });
            });
        });
    }

    /// Removes it, if it is there.
    pub fn remove(&self, batch: &mut Batch) {
        self.element(batch, Request::ForgetFlows, DESTROYSETELEM, |_| {});
        batch
            .message(Request::ForgetFlows, DESTROYCHAIN, 0, &INET)
            .text(CHAIN_TABLE, self.table)
            .text(CHAIN_NAME, &chain(self.context));
    }

    /// A message about the guest's element.
    fn element(
        &self,
        batch: &mut Batch,
        request: Request,
        kind: u16,
        data: impl FnOnce(&mut Batch),
    ) {
        Place { table: self.table, set: "flows", key: self.key }
            .message(batch, request, kind, data);
    }
}

/// The context ids and groups of an instance in the kernel's list of listeners.
pub fn listening(text: &str, instance: u8) -> Vec<(u32, u16)> {
    let groups = text.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok());
    groups
        .filter(|group: &u16| group / GROUPS == u16::from(instance))
        .map(|group| (u32::from(group % GROUPS), group))
        .collect()
}

/// Asks for what is logged to a group.
fn bind(batch: &mut Batch, group: u16) {
    const CONFIG: u16 = 0x0401;
    const COMMAND: u16 = 1;
    const MODE: u16 = 2;
    const BUFFER: u16 = 3;
    const TIMEOUT: u16 = 4;
    const THRESHOLD: u16 = 5;
    const BIND: u8 = 1;
    const COPY_PACKET: u8 = 2;
    let [high, low] = group.to_be_bytes();
    let mode = [&COPIED.to_be_bytes()[..], &[COPY_PACKET, 0]].concat();
    batch
        .message(Request::BindFlows, CONFIG, 0, &[0, 0, high, low])
        .attr(COMMAND, &[BIND])
        .attr(MODE, &mode)
        .attr(BUFFER, &DATAGRAM.to_be_bytes())
        .attr(TIMEOUT, &LONGEST.to_be_bytes())
        .attr(THRESHOLD, &PACKETS.to_be_bytes());
}

fn chain(context: u32) -> String {
    format!("flows_{context}")
}

const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_those_of_the_instance() {
        let text =
            "    1   1234     0 2    68 100  1\n 1029  77 0 2 68 100 1\n2049 8 0 2 68 100 1\n";
        assert_eq!(listening(text, 1), [(5, 1029)]);
        assert_eq!(listening(text, 2), [(1, 2049)]);
        assert_eq!(listening("garbage\n\n", 1), []);
    }
}
