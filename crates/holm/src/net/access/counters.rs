//! What the rules of a guest have matched.

use super::script::{all, counter, table};
use crate::config::AccessRule;
use crate::net::error::Error;
use crate::net::netlink::{Batch, Socket, find};
use crate::net::nft::{self, INET};
use crate::net::request::Request;
use crate::net::traffic::Volume;
use crate::record::Network;

/// A rule of a guest, and what it has matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Whether it is of `net.deny`, not of `net.allow`.
    pub denies: bool,
    /// The rule.
    pub rule: AccessRule,
    /// Packets that it has matched; nothing if the rules were flushed.
    pub matched: Volume,
}

/// What each rule of a guest that runs has matched, exceptions first.
pub fn counted(network: &Network) -> Result<Vec<Counted>, Error> {
    if network.access.is_empty() {
        return Ok(Vec::new());
    }
    let netfilter = Socket::netfilter()?;
    let mut rules = Vec::new();
    for (denies, rule) in all(network) {
        let name = counter(network.context, denies, &rule);
        let matched = read(&netfilter, &table(network.instance), &name)?;
        rules.push(Counted { denies, rule, matched });
    }
    Ok(rules)
}

/// What a counter of a table has counted; nothing if it is not there.
fn read(netfilter: &Socket, table: &str, name: &str) -> Result<Volume, Error> {
    const GETOBJ: u16 = 0x0a13;
    const OBJ_TABLE: u16 = 1;
    const OBJ_NAME: u16 = 2;
    const OBJ_TYPE: u16 = 3;
    const OBJ_DATA: u16 = 4;
    const COUNTER: [u8; 4] = 1u32.to_be_bytes();
    const COUNTER_BYTES: u16 = 1;
    const COUNTER_PACKETS: u16 = 2;
    let mut batch = Batch::default();
    batch
        .message(Request::ReadCounts, GETOBJ, 0, &INET)
        .text(OBJ_TABLE, table)
        .text(OBJ_NAME, name)
        .attr(OBJ_TYPE, &COUNTER);
    let mut volume = Volume::default();
    nft::found(netfilter, &batch, |attributes| {
        let data = find(attributes, OBJ_DATA).unwrap_or_default();
        let number = |kind| find(data, kind)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        volume.bytes = number(COUNTER_BYTES).unwrap_or(0);
        volume.packets = number(COUNTER_PACKETS).unwrap_or(0);
    })?;
    Ok(volume)
}
