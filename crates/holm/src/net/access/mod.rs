//! Which connections of a guest are refused: those of `net.deny`, but for those of `net.allow`.
//!
//! ```text
//! table inet holm-N-access       of a Holm root, while guests with such settings run
//!   map out_if in_if             the chains of private guests, by their interface
//!   map out_4 out_6 in_4 in_6    the chains of native guests, by their address
//!   map out_cgroup in_cgroup     those of guests that share an address, by their cgroup
//!   set sharing                  the addresses that are shared
//!   chain input forward output   the hooks, which look up the chains of what guests open, and
//!   chain input postrouting      of what others open to them
//!   chain sharing-out sharing-in the same for shared addresses
//!   chain cC_out cC_in           what the guest with context id C opens, what others open to it
//!   counter cC.deny_out_tcp_25   the packets that an item of its settings has matched
//! /run/holm/N/access.lock        locked while they are changed
//! ```
//!
//! The rules stand behind the translation of addresses: they see with whom a guest has to do, not
//! the port of the host that it has asked. Connections that were open before a rule came are
//! refused too, so what conntrack calls the direction of a packet decides, not its state.

mod counters;
mod listed;
mod script;

pub use counters::{Counted, counted};

use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;

use super::error::Error;
use super::lock;
use super::netlink::{Batch, Socket};
use super::nft::{self, INET};
use super::request::Request;
use crate::Failed;
use crate::config::Direction;
use crate::record::Network;
use listed::Listed;

/// Makes the rules of a guest what its network says, at once for all of them; what a rule has
/// counted that stays is kept.
///
/// `cgroup` is the guest's.
pub fn set(network: &Network, cgroup: BorrowedFd<'_>) -> Result<(), Error> {
    let Network { instance, context, .. } = *network;
    if network.access.is_empty() {
        return remove(instance, context);
    }
    let table = script::table(instance);
    let netfilter = Socket::netfilter()?;
    let _lock = lock(instance)?;
    let mut script = String::new();
    if !nft::has_table(&netfilter, &table)? {
        script.push_str(&script::hooks(instance));
    } else if has_any(&netfilter, instance, context)? {
        let listed = Listed::parse(&table, &nft::list(&table)?)?;
        script.push_str(&listed.removal(&table, context, &script::counters(network)));
    }
    script.push_str(&script::guest(network, &directory(cgroup)?));
    nft::load(&table, &script)
}

/// Where the directory is that this opens.
fn directory(cgroup: BorrowedFd<'_>) -> Result<PathBuf, Error> {
    let link = format!("/proc/self/fd/{}", cgroup.as_raw_fd());
    Ok(fs::read_link(&link).map_err(|error| Failed::new("read", link, error))?)
}

/// Removes the rules of a guest, and with the last one the table; succeeds if there is nothing to
/// remove.
pub fn remove(instance: u8, context: u32) -> Result<(), Error> {
    let netfilter = Socket::netfilter()?;
    if !has_any(&netfilter, instance, context)? {
        return Ok(());
    }
    let table = script::table(instance);
    let _lock = lock(instance)?;
    // Another command may have removed it meanwhile.
    if !nft::has_table(&netfilter, &table)? {
        return Ok(());
    }
    let listed = Listed::parse(&table, &nft::list(&table)?)?;
    if listed.has_no_other(context) {
        return nft::delete_table(&table);
    }
    nft::load(&table, &listed.removal(&table, context, &[]))
}

/// Removes the rules of an instance without running guests.
pub fn destroy(instance: u8) -> Result<(), Error> {
    nft::delete_table(&script::table(instance))
}

/// Whether the rules of a guest are there: another program may have flushed them.
pub fn is_set(network: &Network) -> Result<bool, Error> {
    let netfilter = Socket::netfilter()?;
    for direction in script::directions(network) {
        if !has_chain(&netfilter, network.instance, network.context, direction)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_any(netfilter: &Socket, instance: u8, context: u32) -> Result<bool, Error> {
    Ok(has_chain(netfilter, instance, context, Direction::Out)?
        || has_chain(netfilter, instance, context, Direction::In)?)
}

fn has_chain(
    netfilter: &Socket,
    instance: u8,
    context: u32,
    direction: Direction,
) -> Result<bool, Error> {
    const GETCHAIN: u16 = 0x0a04;
    const CHAIN_TABLE: u16 = 1;
    const CHAIN_NAME: u16 = 3;
    let mut batch = Batch::default();
    batch
        .message(Request::FindChain, GETCHAIN, 0, &INET)
        .text(CHAIN_TABLE, &script::table(instance))
        .text(CHAIN_NAME, &script::chain(context, direction));
    nft::found(netfilter, &batch, |_| {})
}

fn lock(instance: u8) -> Result<fs::File, Error> {
    lock::lock(lock::path(instance, "access"), &"the access rules of guests")
}
