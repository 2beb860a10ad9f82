//! The bound of the connections that native guests open, where the host tracks connections.
//!
//! Rules that ask connection tracking turn it on, which costs every packet: so the table is there
//! only where something else has turned it on. It matches cgroups, so a start adds nothing to it.

use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::fstat;

use crate::failed::read_if_there;
use crate::net::error::Error;
use crate::net::lock;
use crate::net::netlink::{Batch, Socket};
use crate::net::nft::{self, GETSETELEM, NEWSETELEM, Place};
use crate::net::request::Request;
use crate::net::{CONNECTIONS_MAX, GUEST_LEVEL};

/// The Holm root's cgroup is one above its guests'.
const ROOT_LEVEL: u32 = GUEST_LEVEL - 1;

fn table(instance: u8) -> String {
    format!("holm-{instance}-native")
}

fn script(table: &str) -> String {
    format!(
        r"table inet {table}
delete table inet {table}
table inet {table} {{
  # The cgroup of the Holm root.
  set root {{ type cgroupsv2; }}
  set openers {{ type cgroupsv2; flags dynamic; }}
  set refused_openers {{ type cgroupsv2; flags dynamic, timeout; timeout 100ms; }}
  # The first packet of each connection: an entry that is not in the table yet.
  chain opened_by_guests {{
    type filter hook output priority mangle; policy accept;
    socket cgroupv2 level {ROOT_LEVEL} @root ct state new ct status ! confirmed goto count_opened
  }}
  # As those of private guests are counted.
  chain count_opened {{
    socket cgroupv2 level {GUEST_LEVEL} @refused_openers drop
    add @openers {{ socket cgroupv2 level {GUEST_LEVEL} ct count over {CONNECTIONS_MAX} }} goto refuse
  }}
  chain refuse {{
    add @refused_openers {{ socket cgroupv2 level {GUEST_LEVEL} }}
    drop
  }}
}}
"
    )
}

/// Whether the host tracks connections. A host that does so has some, if only its own.
pub fn is_on() -> Result<bool, Error> {
    const TRACKED: &str = "/proc/sys/net/netfilter/nf_conntrack_count";
    let text = read_if_there(Path::new(TRACKED))?;
    Ok(text.is_some_and(|text| text.trim() != "0"))
}

/// Bounds the connections of an instance's native guests; `pool` is the cgroup of its Holm root.
/// Returns whether they were not bounded before.
pub fn bound(instance: u8, pool: BorrowedFd<'_>) -> Result<bool, Error> {
    let failed = |errno: rustix::io::Errno| Error::Programs {
        what: "find",
        object: "the cgroup of the Holm root".to_owned(),
        source: errno.into(),
    };
    let root = fstat(pool).map_err(failed)?.st_ino;
    let netfilter = Socket::netfilter()?;
    if is_bounded(&netfilter, instance, root)? {
        return Ok(false);
    }
    let _lock = lock::lock(lock::path(instance, "native-table"), &"the table of native guests")?;
    if is_bounded(&netfilter, instance, root)? {
        return Ok(false);
    }
    let table = table(instance);
    nft::load(&table, &script(&table))?;
    netfilter.commit(|batch| element(batch, NEWSETELEM, instance, root))?;
    Ok(true)
}

/// Removes the bound; succeeds if there is none.
pub fn unbound(instance: u8) -> Result<(), Error> {
    nft::delete_table(&table(instance))
}

/// The element comes last, so the table is complete if it is there.
fn is_bounded(netfilter: &Socket, instance: u8, root: u64) -> Result<bool, Error> {
    let mut batch = Batch::default();
    element(&mut batch, GETSETELEM, instance, root);
    nft::found(netfilter, &batch, |_| {})
}

/// A message about the element for the cgroup of the Holm root.
fn element(batch: &mut Batch, kind: u16, instance: u8, root: u64) {
    let (table, key) = (table(instance), root.to_ne_bytes());
    let place = Place { table: &table, set: "root", key: &key };
    place.message(batch, Request::BoundConnections, kind, |_| {});
}
