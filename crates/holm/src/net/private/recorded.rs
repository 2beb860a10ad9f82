//! The rules that tell the connections of guests with `net.flows`. One stays in the table when its
//! guest ends, until another gets its context id: removing it would take a transaction.

use super::ruleset::table;
use crate::net::addresses::host_prefix;
use crate::net::error::Error;
use crate::net::flows::{CHAIN, ensure_chain};
use crate::net::netlink::{Batch, Socket};
use crate::net::nflog::{Kind, Rule};
use crate::record::host_index;

/// What the first guest with `net.flows` adds.
fn script(instance: u8) -> String {
    let (table, mine) = (table(instance), host_prefix(instance));
    format!(
        r#"table inet {table} {{
  # Each connection once, behind the translation of addresses: as others see it.
  chain {CHAIN} {{ type filter hook postrouting priority 110; policy accept; }}
}}
flush chain inet {table} {CHAIN}
add rule inet {table} {CHAIN} ct state new ct status snat ct status ! confirmed iifname "{mine}*" iif vmap @flows
"#
    )
}

/// Adds the chain, if it is missing.
pub fn ensure(netfilter: &Socket, instance: u8) -> Result<(), Error> {
    ensure_chain(netfilter, &table(instance), &script(instance))
}

/// Adds the rules again after the table was made again, for those guests whose monitors listen, as
/// `listeners` says.
pub fn restore(netfilter: &Socket, instance: u8, listeners: &str) -> Result<(), Error> {
    let listening = Kind::Flows.listening(listeners, instance);
    if !listening.is_empty() {
        ensure(netfilter, instance)?;
    }
    for (context, group) in listening {
        netfilter.commit(|batch| begin(batch, instance, context, Some(group)))?;
    }
    Ok(())
}

/// Has the connections of a guest told to a group from now on, or to none. There is a chain for
/// them, unless it is none.
pub fn begin(batch: &mut Batch, instance: u8, context: u32, group: Option<u16>) {
    let (table, key) = (table(instance), host_index(instance, context).to_ne_bytes());
    Rule { kind: Kind::Flows, table: &table, key: &key, context }.begin(batch, group);
}
