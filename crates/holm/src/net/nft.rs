//! The nft program, and whole tables.

use std::process::Command;

use rustix::io::Errno;

use super::error::Error;
use super::netlink::{Batch, CREATE, Socket};
use super::request::Request;
use crate::process::{call_for_errors, call_for_output};
use crate::step;

/// `nfgenmsg` of family `inet`.
pub const INET: [u8; 4] = [1, 0, 0, 0];
// Message types: subsystem 10 in the high byte.
pub const GETTABLE: u16 = 0x0a01;
const DELTABLE: u16 = 0x0a02;
pub const TABLE_NAME: u16 = 1;
pub const NEWSETELEM: u16 = 0x0a0c;
pub const GETSETELEM: u16 = 0x0a0d;
pub const DELSETELEM: u16 = 0x0a0e;
/// As `DELSETELEM`, without an error if there is no such element (from Linux 6.3 on).
pub const DESTROYSETELEM: u16 = 0x0a1e;
// Attributes of messages about elements.
pub const LIST_TABLE: u16 = 1;
pub const LIST_SET: u16 = 2;
pub const LIST_ELEMENTS: u16 = 3;
const LIST_ELEM: u16 = 1;
pub const ELEM_KEY: u16 = 1;
pub const ELEM_DATA: u16 = 2;
pub const ELEM_TIMEOUT: u16 = 4;
pub const DATA_VALUE: u16 = 1;

/// An element of a set or map.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The table.
    pub table: &'a str,
    /// The set or map.
    pub set: &'a str,
    /// The key, in the kernel's form: every part is padded to four bytes.
    pub key: &'a [u8],
}

impl Place<'_> {
    /// Adds a message of a type about the element; `data` adds what is behind its key in a map.
    pub fn message(
        self,
        batch: &mut Batch,
        request: Request,
        kind: u16,
        data: impl FnOnce(&mut Batch),
    ) {
        let flags = if kind == NEWSETELEM { CREATE } else { 0 };
        batch
            .message(request, kind, flags, &INET)
            .text(LIST_TABLE, self.table)
            .text(LIST_SET, self.set)
            .nest(LIST_ELEMENTS, |batch| {
                batch.nest(LIST_ELEM, |batch| {
                    batch.nest(ELEM_KEY, |batch| {
                        batch.attr(DATA_VALUE, self.key);
                    });
                    data(batch);
                });
            });
    }
}

/// Has nft load a script, all of it or nothing; errors name the table.
pub fn load(table: &str, script: &str) -> Result<(), Error> {
    let _at = step::at("nft");
    let called = call_for_errors(Command::new("nft").args(["-f", "-"]), script);
    let nft = called.map_err(Error::NftMissing)?;
    if nft.status.success() {
        return Ok(());
    }
    Err(refused(table, &nft.printed))
}

/// A table as nft lists it in JSON.
pub fn list(table: &str) -> Result<String, Error> {
    let _at = step::at("nft");
    let mut command = Command::new("nft");
    command.args(["--json", "list", "table", "inet", table]);
    let nft = call_for_output(&mut command).map_err(Error::NftMissing)?;
    if nft.status.success() { Ok(nft.printed) } else { Err(refused(table, "it cannot be listed")) }
}

fn refused(table: &str, printed: &str) -> Error {
    let message = printed.lines().next().unwrap_or("no message").to_owned();
    Error::Nft { table: table.to_owned(), message }
}

/// Whether a query of nftables finds its object; `each` is called with what it finds.
pub fn found(
    netfilter: &Socket,
    batch: &Batch,
    mut each: impl FnMut(&[u8]),
) -> Result<bool, Error> {
    match netfilter.query(batch, |_, payload| each(payload.get(4..).unwrap_or_default())) {
        Ok(()) => Ok(true),
        Err(refused) if refused.errno == Errno::NOENT => Ok(false),
        Err(refused) => Err(refused.into()),
    }
}

/// Whether a table exists.
pub fn has_table(netfilter: &Socket, table: &str) -> Result<bool, Error> {
    let mut batch = Batch::default();
    batch.message(Request::FindTable, GETTABLE, 0, &INET).text(TABLE_NAME, table);
    found(netfilter, &batch, |_| {})
}

/// Deletes a table, if it exists.
pub fn delete_table(table: &str) -> Result<(), Error> {
    let deleted = Socket::netfilter()?.commit(|batch| {
        batch.message(Request::DeleteTable, DELTABLE, 0, &INET).text(TABLE_NAME, table);
    });
    match deleted {
        Err(refused) if refused.errno != Errno::NOENT => Err(refused.into()),
        _ => Ok(()),
    }
}
