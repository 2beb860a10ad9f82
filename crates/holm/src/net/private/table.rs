//! Loading an instance's nftables table, which is needed once per boot, and deleting it.

use std::path::{Path, PathBuf};

use super::elements::{add, wanted};
use super::ruleset::{DIGEST_PREFIX, digest, ruleset, table};
use super::{recorded, requests};
use crate::failed::read_if_there;
use crate::net::dns::Resolver;
use crate::net::error::Error;
use crate::net::lock;
use crate::net::netlink::{Batch, Socket, find};
use crate::net::nft;
use crate::net::request::Request;

/// Who listens to the log of nftables.
const LISTENERS: &str = "/proc/net/netfilter/nfnetlink_log";

/// Whether the instance's table exists and has this digest.
fn is_current(netfilter: &Socket, instance: u8, digest: &str) -> Result<bool, Error> {
    const TABLE_USERDATA: u16 = 6;
    let mut batch = Batch::default();
    batch
        .message(Request::FindTable, nft::GETTABLE, 0, &nft::INET)
        .text(nft::TABLE_NAME, &table(instance));
    let mut current = false;
    nft::found(netfilter, &batch, |attributes| {
        let comment = find(attributes, TABLE_USERDATA).unwrap_or_default();
        current = comment.windows(digest.len()).any(|bytes| bytes == digest.as_bytes());
    })?;
    Ok(current)
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
    nft::load(
        &table,
        &format!(
            "table inet {table}\ndelete table inet {table}\n\
             table inet {table} {{\n  comment \"{digest}\"{rules}}}\n"
        ),
    )?;
    // Guests may run already: the ruleset was flushed, or another version of Holm loaded it.
    add(&netfilter, instance, &wanted(route, instance)?)?;
    let listeners = read_if_there(Path::new(LISTENERS))?.unwrap_or_default();
    requests::restore(&netfilter, instance, &listeners)?;
    recorded::restore(&netfilter, instance, &listeners)
}

/// Deletes the instance's table, if it exists.
pub fn delete(instance: u8) -> Result<(), Error> {
    nft::delete_table(&table(instance))
}

/// The file that is locked while an instance's table is made, and stays.
fn lock_path(instance: u8) -> PathBuf {
    lock::path(instance, "net")
}
