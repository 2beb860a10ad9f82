//! The rules that tell the connections of guests with `net.flows`. One stays in the table when its
//! guest ends, until another gets its context id: removing it would take a transaction.

use std::path::Path;

use super::ruleset::table;
use crate::failed::read_if_there;
use crate::net::error::Error;
use crate::net::flows::{Rule, listening};
use crate::net::netlink::{Batch, Socket};
use crate::record::host_index;

/// Adds the rules again after the table was made again, for those guests whose monitors listen.
pub fn restore(netfilter: &Socket, instance: u8) -> Result<(), Error> {
    const LISTENERS: &str = "/proc/net/netfilter/nfnetlink_log";
    let text = read_if_there(Path::new(LISTENERS))?.unwrap_or_default();
    for (context, group) in listening(&text, instance) {
        netfilter.commit(|batch| begin(batch, instance, context, Some(group)))?;
    }
    Ok(())
}

/// Has the connections of a guest told to a group from now on, or to none.
pub fn begin(batch: &mut Batch, instance: u8, context: u32, group: Option<u16>) {
    let (table, key) = (table(instance), host_index(instance, context).to_ne_bytes());
    Rule { table: &table, key: &key, context }.begin(batch, group);
}
