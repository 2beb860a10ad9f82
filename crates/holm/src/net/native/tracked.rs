//! The bound of the connections that native guests open, where the host tracks connections, and
//! what tells those of guests with `net.flows`. Datagrams that `steer` has given to a socket, and
//! their answers, are not tracked.
//!
//! Rules that ask connection tracking turn it on, which costs every packet: so the table is there
//! only where something else has turned it on. It matches cgroups, so a start adds nothing to it.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use holm_bpf::Map;
use rustix::fs::fstat;
use rustix::io::Errno;

use super::directory::fail;
use super::programs;
use crate::failed::read_if_there;
use crate::net::error::Error;
use crate::net::flows::{self, CHAIN};
use crate::net::lock;
use crate::net::netlink::{Batch, Socket};
use crate::net::nflog::{Kind, Rule};
use crate::net::nft::{self, GETSETELEM, NEWSETELEM, Place};
use crate::net::request::Request;
use crate::net::{CONNECTIONS_MAX, CgroupId, GUEST_LEVEL, UNTRACKED};
use crate::record::Network;

/// The key in [`Map::Tracking`].
const ONLY: [u8; 4] = [0; 4];

/// The Holm root's cgroup is one above its guests'.
const ROOT_LEVEL: u32 = GUEST_LEVEL - 1;

fn table(instance: u8) -> String {
    format!("holm-{instance}-native")
}

fn script(table: &str) -> String {
    // As long as the kernel remembers a connection of datagrams in both directions.
    let asked = "size 65535; flags dynamic, timeout; timeout 2m;";
    format!(
        r"table inet {table}
delete table inet {table}
table inet {table} {{
  # The cgroup of the Holm root.
  set pool {{ type cgroupsv2; }}
  set openers {{ type cgroupsv2; flags dynamic; }}
  set refused_openers {{ type cgroupsv2; flags dynamic, timeout; timeout 100ms; }}
  # The first packet of each connection: an entry that is not in the table yet.
  chain opened_by_guests {{
    type filter hook output priority mangle; policy accept;
    ct state new ct status ! confirmed socket cgroupv2 level {ROOT_LEVEL} @pool goto count_opened
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
  # Where connections are translated, the kernel takes the socket of a new one that was given it.
  set asked_4 {{ type ipv4_addr . inet_service . ipv4_addr . inet_service; {asked} }}
  set asked_6 {{ type ipv6_addr . inet_service . ipv6_addr . inet_service; {asked} }}
  chain steered {{
    type filter hook prerouting priority raw; policy accept;
    meta priority {UNTRACKED} goto not_tracked
  }}
  chain not_tracked {{
    update @asked_4 {{ ip saddr . udp sport . ip daddr . udp dport }}
    update @asked_6 {{ ip6 saddr . udp sport . ip6 daddr . udp dport }}
    notrack
  }}
  # As new connections they would be the guest's.
  chain answers {{
    type filter hook output priority raw; policy accept;
    meta l4proto != udp return
    ip daddr . udp dport . ip saddr . udp sport @asked_4 goto answer
    ip6 daddr . udp dport . ip6 saddr . udp sport @asked_6 goto answer
  }}
  chain answer {{
    meta priority set {UNTRACKED}
    notrack
  }}
}}
"
    )
}

/// What the first guest with `net.flows` adds.
fn recording(table: &str) -> String {
    format!(
        r"table inet {table} {{
  map flows {{ type cgroupsv2 : verdict; }}
  chain {CHAIN} {{ type filter hook output priority 110; policy accept; }}
}}
flush chain inet {table} {CHAIN}
# Each connection that leaves the host from a shared address once, as others see it.
add rule inet {table} {CHAIN} oifname != lo meta nfproto ipv4 ct state new ct status ! confirmed socket cgroupv2 level {GUEST_LEVEL} vmap @flows
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
    let failed = |errno: Errno| Error::Programs {
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
    if let Some(tracking) = programs::map_if_there(instance, Map::Tracking)? {
        tracking.update(&ONLY, &ONLY).map_err(fail_at("add to", instance))?;
    }
    Ok(true)
}

/// Has the connections of a guest with `net.flows` told to its monitor from now on. The table is
/// there: [`bound`] has made it.
pub fn tell_flows(network: &Network, id: CgroupId) -> Result<(), Error> {
    let group = flows::group_of(network)?;
    let table = table(network.instance);
    let netfilter = Socket::netfilter()?;
    flows::ensure_chain(&netfilter, &table, &recording(&table))?;
    with_rule(network, id, |rule| Ok(netfilter.commit(|batch| rule.begin(batch, group))?))
}

/// Whether they are.
pub fn tells_flows(network: &Network, id: CgroupId) -> Result<bool, Error> {
    with_rule(network, id, |rule| rule.is_there(&Socket::netfilter()?))
}

/// Has them told no longer; succeeds if they are not.
pub fn forget_flows(network: &Network, id: CgroupId) -> Result<(), Error> {
    let removed =
        with_rule(network, id, |rule| Ok(Socket::netfilter()?.commit(|batch| rule.remove(batch))))?;
    match removed {
        Err(refused) if refused.errno != Errno::NOENT => Err(refused.into()),
        _ => Ok(()),
    }
}

fn with_rule<T>(
    network: &Network,
    id: CgroupId,
    each: impl FnOnce(Rule<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let table = table(network.instance);
    each(Rule { kind: Kind::Flows, table: &table, key: &id, context: network.context })
}

fn fail_at(what: &'static str, instance: u8) -> impl FnOnce(io::Error) -> Error {
    move |source| fail(what, &programs::directory(instance))(source)
}

/// Removes the bound; succeeds if there is none.
pub fn unbound(instance: u8) -> Result<(), Error> {
    nft::delete_table(&table(instance))
}

/// The element comes last, so the table is complete if it is there, and then what the programs are
/// told: those of another version of Holm want another table.
fn is_bounded(netfilter: &Socket, instance: u8, root: u64) -> Result<bool, Error> {
    let is_known = match programs::map_if_there(instance, Map::Tracking)? {
        Some(tracking) => tracking.get(&ONLY).map_err(fail_at("ask for", instance))?.is_some(),
        None => true,
    };
    if !is_known {
        return Ok(false);
    }
    let mut batch = Batch::default();
    element(&mut batch, GETSETELEM, instance, root);
    nft::found(netfilter, &batch, |_| {})
}

/// A message about the element for the cgroup of the Holm root.
fn element(batch: &mut Batch, kind: u16, instance: u8, root: u64) {
    let (table, key) = (table(instance), root.to_ne_bytes());
    let place = Place { table: &table, set: "pool", key: &key };
    place.message(batch, Request::BoundConnections, kind, |_| {});
}
