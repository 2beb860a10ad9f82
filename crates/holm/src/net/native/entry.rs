//! A guest's entry in the maps, from before its first process until after its last.

use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use holm_bpf::{Guest, Map, Shared, Traffic as Counted, cap_value, network_key, owner_key};
use holm_sys::{bpf, socket};
use rustix::fs::fstat;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::{interface, lists, loopback, programs, tracked};
use crate::net::CgroupId;
use crate::net::error::Error;
use crate::net::netlink::Socket;
use crate::net::ports;
use crate::net::request::Request;
use crate::net::route;
use crate::net::traffic::{Reason, Traffic, Volume};
use crate::record::Network;
use crate::step;

fn fail(what: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Programs { what, object: "native guests".to_owned(), source }
}

/// The id of a cgroup: kernfs gives its directory the same inode number.
pub fn id(cgroup: BorrowedFd<'_>) -> Result<CgroupId, Error> {
    let found = fstat(cgroup).map_err(|errno| fail("find the cgroup of")(errno.into()))?;
    Ok(found.st_ino.to_ne_bytes())
}

/// Gives a guest its addresses, before any process of it runs. `pool` is the cgroup of the Holm
/// root, `cgroup` the guest's below it, `root` the uid of guest root on the host.
pub fn admit(
    network: &Network,
    pool: BorrowedFd<'_>,
    cgroup: BorrowedFd<'_>,
    root: u32,
) -> Result<(), Error> {
    let id = id(cgroup)?;
    let _lock = programs::lock()?;
    programs::make_ready(network.instance, pool)?;
    step::done("native-programs");
    check_free(network, id)?;
    if network.hides_sockets {
        lists::hide(network, netns()?)?;
        step::done("native-hidden");
    }
    let (instance, context) = (network.instance, network.context);
    loopback::add(loopback::address6(instance, context))?;
    begin_counts(instance, context)?;
    receive_at_most(network)?;
    give(network, id, root)
}

/// The cgroups of all native guests of an instance that run.
pub fn ids(instance: u8) -> Result<Vec<CgroupId>, Error> {
    let keys = programs::map(instance, Map::Guests)?.keys().map_err(fail("ask for"))?;
    Ok(keys.into_iter().filter_map(|key| key.try_into().ok()).collect())
}

/// Counts the guest's sockets, and its traffic, from 0 on.
fn begin_counts(instance: u8, context: u32) -> Result<(), Error> {
    const NONE: [u8; 4] = [0; 4];
    let (network, number) = (loopback::network(instance, context), context.to_ne_bytes());
    let set = |map, key: &[u8], value: &[u8]| {
        programs::map(instance, map)?.update(key, value).map_err(fail("add to"))
    };
    set(Map::Listening, &network.octets(), &NONE)?;
    set(Map::Held, &number, &NONE)?;
    set(Map::Counters, &number, &Counted::NONE)
}

/// Bounds what a guest receives by its `net.cap`, or no longer. Programs of a Holm that did not
/// know that leave it unbounded until the next start of a native guest replaces them.
pub fn receive_at_most(network: &Network) -> Result<(), Error> {
    let Some(caps) = programs::map_if_there(network.instance, Map::Caps)? else { return Ok(()) };
    let key = loopback::network(network.instance, network.context).octets();
    match network.shaping.as_ref().and_then(|shaping| shaping.cap) {
        Some(cap) => {
            caps.update(&key, &cap_value(cap / 8)).map_err(fail("bound what is received by"))
        }
        None => caps.delete(&key).map(drop).map_err(fail("remove from")),
    }
}

/// What a guest that runs has sent and received; `None` if it runs since before that was counted.
pub fn traffic(network: &Network) -> Result<Option<Traffic>, Error> {
    let map = programs::map_if_there(network.instance, Map::Counters)?;
    let number = network.context.to_ne_bytes();
    let values = map.map_or(Ok(None), |map| map.get(&number));
    let Some(values) = values.map_err(fail("ask for the traffic of"))? else { return Ok(None) };
    let all = Counted::of_all_cpus(&values);
    Ok(Some(Traffic {
        sent: Volume { packets: all.sent_packets, bytes: all.sent_bytes },
        received: Volume { packets: all.received_packets, bytes: all.received_bytes },
        opened: all.opened,
        accepted: all.accepted,
        dropped: vec![
            (Reason::ForeignSource, all.foreign_source),
            (Reason::ForeignDestination, all.foreign_destination),
            (Reason::OverCap, all.over_cap),
        ],
    }))
}

/// Gives a guest that runs the addresses of `after`, and takes those of `before` back that are not
/// among them.
pub fn change(
    before: &Network,
    after: &Network,
    cgroup: BorrowedFd<'_>,
    root: u32,
) -> Result<(), Error> {
    let id = id(cgroup)?;
    let _lock = programs::lock()?;
    check_free(after, id)?;
    give(after, id, root)?;
    step::done("native-given");
    let gone = before.native.iter().filter(|address| !after.native.contains(address));
    disown(before.instance, gone.copied().map(owner_key), id)?;
    let gone = before.added.iter().filter(|added| !after.added.contains(added));
    take_back(before, id, &gone.copied().collect::<Vec<_>>())
}

/// Refuses addresses that another guest has, unless both share them.
fn check_free(network: &Network, id: CgroupId) -> Result<(), Error> {
    let of_others = anothers(network, id)?;
    let taken = of_others.iter().find(|other| !network.shares_address || other.shared.is_none());
    match taken {
        Some(&Anothers { address, shared }) if network.shares_address || shared.is_some() => {
            Err(Error::NotShared { address })
        }
        Some(&Anothers { address, .. }) => Err(Error::AddressTaken { address }),
        None => Ok(()),
    }
}

/// Whether the host has an address of a guest only while others run that share it: then the last of
/// them takes it back, whichever that is.
pub fn is_added_for_others(network: &Network, address: IpAddr) -> Result<bool, Error> {
    let instance = network.instance;
    if !network.shares_address || address.is_ipv6() || !programs::are_loaded(instance)? {
        return Ok(false);
    }
    let guests = programs::map(instance, Map::Guests)?;
    let owners = programs::map(instance, Map::Owners)?;
    let other = owner(&guests, &owners, address).map_err(fail("ask for"))?;
    Ok(other.and_then(|(_, guest)| Shared::of(&guest)).is_some_and(|shared| shared.added))
}

/// An address that another guest has.
struct Anothers {
    address: IpAddr,
    /// How that one shares it, if others of its Holm root may have it too.
    shared: Option<Shared>,
}

/// Removes those of `added` from the interface that no other guest has got meanwhile.
fn take_back(network: &Network, id: CgroupId, added: &[(u32, IpAddr)]) -> Result<(), Error> {
    if added.is_empty() {
        return Ok(());
    }
    let others = anothers(network, id)?;
    let is_anothers = |address| others.iter().any(|other| other.address == address);
    let mut own = added.iter().filter(|(_, address)| !is_anothers(*address));
    own.try_for_each(|&(index, address)| interface::remove(Request::RemoveNative, index, address))
}

/// The addresses of a network that another guest has. Those of other Holm roots count in this
/// network namespace.
fn anothers(network: &Network, id: CgroupId) -> Result<Vec<Anothers>, Error> {
    let namespace = netns()?.to_ne_bytes();
    let mut all = Vec::new();
    for instance in ports::instances(network.instance)? {
        if !programs::are_loaded(instance)? {
            continue;
        }
        let guests = programs::map(instance, Map::Guests)?;
        let owners = programs::map(instance, Map::Owners)?;
        for &address in &network.native {
            let owner = owner(&guests, &owners, address).map_err(fail("ask for"))?;
            match owner {
                Some((other, guest)) if instance == network.instance && other != id => {
                    let shared = Shared::of(&guest).filter(|_| address.is_ipv4());
                    all.push(Anothers { address, shared });
                }
                Some((_, guest))
                    if instance != network.instance && guest.starts_with(&namespace) =>
                {
                    all.push(Anothers { address, shared: None });
                }
                _ => {}
            }
        }
    }
    Ok(all)
}

/// The guest of an instance that has an address, and its entry.
fn owner(
    guests: &bpf::Map,
    owners: &bpf::Map,
    address: IpAddr,
) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let Some(owner) = owners.get(&owner_key(address))? else { return Ok(None) };
    // Without a guest, the entry was left by a change that was killed.
    Ok(guests.get(&owner)?.map(|guest| (owner, guest)))
}

/// Gives a guest the addresses of a network that nobody else has. The caller has the lock.
fn give(network: &Network, id: CgroupId, root: u32) -> Result<(), Error> {
    let (instance, context) = (network.instance, network.context);
    let mut added = network.added.iter();
    added.try_for_each(|&(index, address)| interface::add(Request::AddNative, index, address))?;
    step::done("native-addresses");
    let guest = Guest {
        netns: netns()?,
        root,
        loopback: loopback::network(instance, context),
        loopback6: loopback::address6(instance, context),
        addresses: network.native.clone(),
        shared: network.shares_address.then(|| Shared { added: is_added(network) }),
        capped: network.shaping.as_ref().is_some_and(|shaping| shaping.cap.is_some()),
    };
    let route = Socket::route()?;
    programs::steer(instance, loopback::LO)?;
    for address in &network.native {
        if let Some(interface) = route::local_interface(&route, *address)? {
            programs::steer(instance, interface)?;
        }
    }
    let guests = programs::map(instance, Map::Guests)?;
    let owners = programs::map(instance, Map::Owners)?;
    guests.update(&id, &guest.to_bytes()).map_err(fail("add to"))?;
    guest.owned().iter().try_for_each(|key| owners.update(key, &id)).map_err(fail("add to"))
}

/// Whether the host has a guest's IPv4 address only while it runs, or one that shares it.
fn is_added(network: &Network) -> bool {
    network.added.iter().any(|(_, address)| address.is_ipv4())
}

/// Makes another guest that has the same address the one that is found by it, before `id` goes.
fn hand_over(network: &Network, id: CgroupId) -> Result<(), Error> {
    let Some(address) = network.shared_address() else { return Ok(()) };
    let guests = programs::map(network.instance, Map::Guests)?;
    let owners = programs::map(network.instance, Map::Owners)?;
    for other in guests.keys().map_err(fail("ask for"))? {
        let guest = guests.get(&other).map_err(fail("ask for"))?;
        if other != id && guest.is_some_and(|it| Shared::address(&it) == Some(address)) {
            return owners.update(&owner_key(address), &other).map_err(fail("hand over"));
        }
    }
    Ok(())
}

/// Removes entries of a guest's addresses.
fn disown(instance: u8, keys: impl Iterator<Item = [u8; 16]>, id: CgroupId) -> Result<(), Error> {
    let owners = programs::map(instance, Map::Owners)?;
    for key in keys {
        if owners.get(&key).map_err(fail("ask for"))?.is_some_and(|owner| owner == id) {
            owners.delete(&key).map_err(fail("remove from"))?;
        }
    }
    Ok(())
}

/// Takes a guest's addresses back after its last process has ended, and removes the programs if it
/// was the last guest; `private` are the interfaces of private guests then. Succeeds if there is
/// nothing to take back.
pub fn dismiss(
    network: &Network,
    cgroup: BorrowedFd<'_>,
    private: impl FnOnce() -> Result<Vec<u32>, Error>,
) -> Result<(), Error> {
    let (instance, context) = (network.instance, network.context);
    let id = id(cgroup)?;
    let _lock = programs::lock()?;
    let is_loaded = programs::are_loaded(instance)?;
    if is_loaded {
        hand_over(network, id)?;
        step::done("native-handed-over");
    }
    take_back(network, id, &network.added)?;
    if network.hides_sockets {
        lists::show(network, netns()?)?;
    }
    if !is_loaded {
        return Ok(());
    }
    let guests = programs::map(instance, Map::Guests)?;
    let loopback6 = loopback::address6(instance, context);
    guests.delete(&id).map_err(fail("remove from"))?;
    let network4 = loopback::network(instance, context);
    for map in [Map::Listening, Map::Caps] {
        if let Some(map) = programs::map_if_there(instance, map)? {
            map.delete(&network4.octets()).map_err(fail("remove from"))?;
        }
    }
    let both = [network_key(network4), owner_key(loopback6.into())];
    disown(instance, network.native.iter().copied().map(owner_key).chain(both), id)?;
    loopback::remove(loopback6)?;
    if !guests.is_empty().map_err(fail("ask for"))? {
        return Ok(());
    }
    tracked::unbound(instance)?;
    programs::unload(instance, &private()?)
}

/// Removes the programs of an instance without running guests.
pub fn destroy(instance: u8) -> Result<(), Error> {
    tracked::unbound(instance)?;
    if !programs::are_loaded(instance)? {
        return Ok(());
    }
    let _lock = programs::lock()?;
    programs::unload(instance, &[])
}

/// What tells the host's network namespace, which this process is in, from all others.
fn netns() -> Result<u64, Error> {
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    socket_with(family, kind, SocketFlags::CLOEXEC, None).and_then(socket::netns_cookie).map_err(
        |errno| Error::Programs {
            what: "identify",
            object: "the network namespace".to_owned(),
            source: errno.into(),
        },
    )
}
