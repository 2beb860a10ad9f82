//! Private guests reach native ones, although these are at addresses of the host's: what the host
//! receives for a socket of a native guest, found by its cgroup, is accepted.
//!
//! The rule wants a part of the kernel (`nft_socket`) that hosts without native guests need not
//! have, so the first of them adds it.

use rustix::io::Errno;

use super::ruleset::{NATIVE_GUESTS, TO_NATIVE, table};
use super::table::{ensure, exists, was_loaded};
use crate::net::dns;
use crate::net::error::Error;
use crate::net::lock;
use crate::net::netlink::{Batch, Socket};
use crate::net::nft::{self, DESTROYSETELEM, GETSETELEM, NEWSETELEM, Place};
use crate::net::request::Request;

/// The id of a cgroup.
type Id = [u8; 8];
/// The id of no cgroup, which is in the set when the rule is in its chain.
const LOADED: Id = [0; 8];
/// The guests' cgroups are this far below the root.
const LEVEL: u32 = 2;

/// Accepts what private guests of an instance send to native ones, whose cgroups have these ids.
/// Does nothing while the instance has no table: the first private guest makes it. Hosts without
/// private guests need no nftables.
pub fn reach(instance: u8, native: impl FnOnce() -> Result<Vec<Id>, Error>) -> Result<(), Error> {
    if !was_loaded(instance) {
        return Ok(());
    }
    let netfilter = Socket::netfilter()?;
    if !exists(&netfilter, instance)? || is_there(&netfilter, instance)? {
        return Ok(());
    }
    // It may be that of another version of Holm.
    ensure(&Socket::route()?, instance, &dns::resolver()?)?;
    let _lock = lock::lock(lock::path(instance, "to-native"), &"the rule for native guests")?;
    let table = table(instance);
    nft::load(
        &table,
        &format!(
            "flush chain inet {table} {TO_NATIVE}\n\
             add rule inet {table} {TO_NATIVE} socket cgroupv2 level {LEVEL} @{NATIVE_GUESTS} accept\n"
        ),
    )?;
    let mut ids = native()?;
    ids.push(LOADED);
    Ok(netfilter.commit(|batch| {
        for id in ids {
            element(batch, NEWSETELEM, instance, id);
        }
    })?)
}

/// Accepts what private guests of an instance send to one more native guest.
pub fn add(
    instance: u8,
    id: Id,
    others: impl FnOnce() -> Result<Vec<Id>, Error>,
) -> Result<(), Error> {
    if !was_loaded(instance) {
        return Ok(());
    }
    reach(instance, others)?;
    let netfilter = Socket::netfilter()?;
    if !exists(&netfilter, instance)? {
        return Ok(());
    }
    Ok(netfilter.commit(|batch| element(batch, NEWSETELEM, instance, id))?)
}

/// Forgets a native guest; succeeds if it is not known.
pub fn forget(instance: u8, id: Id) -> Result<(), Error> {
    if !was_loaded(instance) {
        return Ok(());
    }
    let removed = Socket::netfilter()?.commit(|batch| element(batch, DESTROYSETELEM, instance, id));
    match removed {
        Err(refused) if refused.errno != Errno::NOENT => Err(refused.into()),
        _ => Ok(()),
    }
}

fn is_there(netfilter: &Socket, instance: u8) -> Result<bool, Error> {
    let mut batch = Batch::default();
    element(&mut batch, GETSETELEM, instance, LOADED);
    nft::found(netfilter, &batch, |_| {})
}

fn element(batch: &mut Batch, kind: u16, instance: u8, id: Id) {
    let table = table(instance);
    let place = Place { table: &table, set: NATIVE_GUESTS, key: &id };
    place.message(batch, Request::ReachNative, kind, |_| {});
}
