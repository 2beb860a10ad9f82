//! Private guests reach native ones, although these are at addresses of the host's: what the host
//! receives for a socket of a native guest, found by its cgroup, is accepted.
//!
//! The rule wants a part of the kernel (`nft_socket`) that hosts without native guests need not
//! have, so the first of them adds it.

use rustix::io::Errno;

use super::ruleset::{NATIVE_GUESTS, TO_NATIVE, table};
use super::table::{ensure, exists, was_loaded};
use crate::net::error::Error;
use crate::net::netlink::{Batch, Socket};
use crate::net::nft::{self, ELEM_TIMEOUT, GETSETELEM, NEWSETELEM, Place};
use crate::net::request::Request;
use crate::net::{CgroupId, GUEST_LEVEL, dns, lock};

/// The id of no cgroup, which is in the set when the rule is in its chain.
const LOADED: CgroupId = [0; 8];

/// A time in the unit of elements.
const MILLISECOND: u64 = 1;

/// Accepts what private guests of an instance send to native ones, whose cgroups have these ids.
/// Does nothing while the instance has no table: the first private guest makes it.
pub fn reach(
    instance: u8,
    native: impl FnOnce() -> Result<Vec<CgroupId>, Error>,
) -> Result<(), Error> {
    match with_table(instance)? {
        Some(netfilter) => load(&netfilter, instance, native),
        None => Ok(()),
    }
}

/// Accepts what private guests of an instance send to one more native guest. Returns whether the
/// instance has a table, which tracks connections.
pub fn add(
    instance: u8,
    id: CgroupId,
    others: impl FnOnce() -> Result<Vec<CgroupId>, Error>,
) -> Result<bool, Error> {
    let Some(netfilter) = with_table(instance)? else { return Ok(false) };
    load(&netfilter, instance, others)?;
    netfilter.commit(|batch| element(batch, NEWSETELEM, instance, id))?;
    Ok(true)
}

/// Forgets a native guest; succeeds if it is not known. Its element expires at once: for one that
/// is deleted, whoever closes its netlink socket or ends waits some 10 ms.
pub fn forget(instance: u8, id: CgroupId) -> Result<(), Error> {
    if !was_loaded(instance) {
        return Ok(());
    }
    let table = table(instance);
    let place = Place { table: &table, set: NATIVE_GUESTS, key: &id };
    let expired = Socket::netfilter()?.commit(|batch| {
        place.message(batch, Request::ReachNative, NEWSETELEM, |batch| {
            batch.attr(ELEM_TIMEOUT, &MILLISECOND.to_be_bytes());
        });
    });
    match expired {
        Err(refused) if refused.errno != Errno::NOENT => Err(refused.into()),
        _ => Ok(()),
    }
}

/// The way to nftables, if the instance has a table. Hosts without private guests need no nftables.
fn with_table(instance: u8) -> Result<Option<Socket>, Error> {
    if !was_loaded(instance) {
        return Ok(None);
    }
    let netfilter = Socket::netfilter()?;
    Ok(exists(&netfilter, instance)?.then_some(netfilter))
}

/// Adds the rule, and the ids of the native guests that run, if it is missing.
fn load(
    netfilter: &Socket,
    instance: u8,
    native: impl FnOnce() -> Result<Vec<CgroupId>, Error>,
) -> Result<(), Error> {
    if is_there(netfilter, instance)? {
        return Ok(());
    }
    // The table may be that of another version of Holm.
    ensure(&Socket::route()?, instance, &dns::resolver()?)?;
    let _lock = lock::lock(lock::path(instance, "to-native"), &"the rule for native guests")?;
    let table = table(instance);
    nft::load(
        &table,
        &format!(
            "flush chain inet {table} {TO_NATIVE}\n\
             add rule inet {table} {TO_NATIVE} \
             socket cgroupv2 level {GUEST_LEVEL} @{NATIVE_GUESTS} accept\n"
        ),
    )?;
    let ids = native()?;
    Ok(netfilter.commit(|batch| {
        for id in ids.into_iter().chain([LOADED]) {
            element(batch, NEWSETELEM, instance, id);
        }
    })?)
}

fn is_there(netfilter: &Socket, instance: u8) -> Result<bool, Error> {
    let mut batch = Batch::default();
    element(&mut batch, GETSETELEM, instance, LOADED);
    nft::found(netfilter, &batch, |_| {})
}

fn element(batch: &mut Batch, kind: u16, instance: u8, id: CgroupId) {
    let table = table(instance);
    let place = Place { table: &table, set: NATIVE_GUESTS, key: &id };
    place.message(batch, Request::ReachNative, kind, |_| {});
}
