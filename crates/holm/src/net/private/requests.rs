//! The rules that tell the monitors of guests what these ask for by DHCP and the like. One stays in
//! the table when its guest ends, for the next one with its context id: so a start that is not the
//! first with its id adds nothing.

use std::os::fd::OwnedFd;

use super::ruleset::table;
use crate::net::error::Error;
use crate::net::netlink::{Batch, Socket};
use crate::net::nflog::{Kind, Rule};
use crate::record::{Network, host_index};

/// Has a guest's requests told from now on.
pub fn begin(batch: &mut Batch, instance: u8, context: u32, group: u16) {
    with_rule(instance, context, |rule| rule.begin(batch, Some(group)));
}

/// Whether they are.
pub fn are_told(netfilter: &Socket, instance: u8, context: u32) -> Result<bool, Error> {
    with_rule(instance, context, |rule| rule.is_there(netfilter))
}

/// The socket that tells them; `None` where they are not told, or nobody can listen: the kernel has
/// no such log, or another program has the group. The packet socket then receives them, whatever it
/// was.
pub fn listen(network: &Network) -> Result<Option<OwnedFd>, Error> {
    let (instance, context) = (network.instance, network.context);
    if !are_told(&Socket::netfilter()?, instance, context)? {
        return Ok(None);
    }
    let group = Kind::Requests.group(instance, context)?;
    Ok(Kind::Requests.listen(group).ok())
}

/// Adds the rules again after the table was made again, for those guests whose monitors listen, as
/// `listeners` says.
pub fn restore(netfilter: &Socket, instance: u8, listeners: &str) -> Result<(), Error> {
    for (context, group) in Kind::Requests.listening(listeners, instance) {
        netfilter.commit(|batch| begin(batch, instance, context, group))?;
    }
    Ok(())
}

fn with_rule<T>(instance: u8, context: u32, each: impl FnOnce(Rule<'_>) -> T) -> T {
    let (table, key) = (table(instance), host_index(instance, context).to_ne_bytes());
    each(Rule { kind: Kind::Requests, table: &table, key: &key, context })
}
