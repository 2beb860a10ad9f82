//! Loading an instance's nftables table, which is needed once per boot, and deleting it.

use std::path::PathBuf;
use std::process::Command;

use rustix::io::Errno;

use super::elements::{INET, LIST_TABLE, add, wanted};
use super::ruleset::{DIGEST_PREFIX, digest, ruleset, table};
use crate::net::dns::Resolver;
use crate::net::error::Error;
use crate::net::lock;
use crate::net::netlink::{Batch, Socket, find};
use crate::net::request::Request;
use crate::process::call_for_errors;
use crate::step;

/// Whether the instance's table exists and has this digest.
fn is_current(netfilter: &Socket, instance: u8, digest: &str) -> Result<bool, Error> {
    const GETTABLE: u16 = 0x0a01;
    const TABLE_NAME: u16 = 1;
    const TABLE_USERDATA: u16 = 6;
    let mut batch = Batch::default();
    batch.message(Request::FindTable, GETTABLE, 0, &INET).text(TABLE_NAME, &table(instance));
    let mut current = false;
    match netfilter.query(&batch, |_, payload| {
        let comment = payload
            .get(4..)
            .and_then(|attributes| find(attributes, TABLE_USERDATA))
            .unwrap_or_default();
        current = comment.windows(digest.len()).any(|bytes| bytes == digest.as_bytes());
    }) {
        Err(refused) if refused.errno != Errno::NOENT => Err(refused.into()),
        _ => Ok(current),
    }
}

/// Whether the instance's table exists, from whatever version of Holm.
pub fn exists(netfilter: &Socket, instance: u8) -> Result<bool, Error> {
    is_current(netfilter, instance, DIGEST_PREFIX)
}

/// Whether the instance's table was loaded since the host has booted.
pub fn was_loaded(instance: u8) -> bool {
    // An error is no answer: the caller then looks at the interfaces themselves.
    lock_path(instance).try_exists().unwrap_or(true)
}

/// Loads the instance's table, with the published ports of all its guests, if it is missing or has
/// other rules.
pub fn ensure(route: &Socket, instance: u8, resolver: &Resolver) -> Result<(), Error> {
    let rules = ruleset(instance, resolver);
    let digest = digest(&rules);
    let netfilter = Socket::netfilter()?;
    if is_current(&netfilter, instance, &digest)? {
        return Ok(());
    }
    let _lock = lock::lock(lock_path(instance), &"the nftables ruleset")?;
    if is_current(&netfilter, instance, &digest)? {
        return Ok(());
    }
    let table = table(instance);
    run(
        &table,
        &format!(
            "table inet {table}\ndelete table inet {table}\n\
             table inet {table} {{\n  comment \"{digest}\"{rules}}}\n"
        ),
    )?;
    // Guests may run already: the ruleset was flushed, or another version of Holm loaded it.
    add(&netfilter, instance, &wanted(route, instance)?)
}

/// Deletes the instance's table, if it exists.
pub fn delete(instance: u8) -> Result<(), Error> {
    const DELTABLE: u16 = 0x0a02;
    let deleted = Socket::netfilter()?.commit(|batch| {
        batch.message(Request::DeleteTable, DELTABLE, 0, &INET).text(LIST_TABLE, &table(instance));
    });
    match deleted {
        Err(refused) if refused.errno != Errno::NOENT => Err(refused.into()),
        _ => Ok(()),
    }
}

/// The file that is locked while an instance's table is made, and stays.
fn lock_path(instance: u8) -> PathBuf {
    lock::path(instance, "net")
}

fn run(table: &str, script: &str) -> Result<(), Error> {
    let _at = step::at("nft");
    let called = call_for_errors(Command::new("nft").args(["-f", "-"]), script);
    let nft = called.map_err(Error::NftMissing)?;
    if nft.status.success() {
        return Ok(());
    }
    Err(Error::Nft {
        table: table.to_owned(),
        message: nft.printed.lines().next().unwrap_or("no message").to_owned(),
    })
}
