//! A guest's entry in the maps, from before its first process until after its last.

use std::io;
use std::os::fd::BorrowedFd;

use holm_bpf::{Guest, Map, network_key, owner_key};
use holm_sys::{bpf, socket};
use rustix::fs::fstat;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::{loopback, programs};
use crate::net::error::Error;
use crate::net::netlink::Socket;
use crate::net::route;
use crate::record::Network;
use crate::step;

fn fail(what: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Programs { what, object: "native guests".to_owned(), source }
}

/// The id of a cgroup, as programs see it: kernfs gives its directory the same inode number.
fn id(cgroup: BorrowedFd<'_>) -> Result<[u8; 8], Error> {
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
    let (instance, context) = (network.instance, network.context);
    let guest = Guest {
        netns: netns()?,
        root,
        loopback: loopback::network(instance, context),
        loopback6: loopback::address6(instance, context),
        addresses: network.native.clone(),
    };
    let id = id(cgroup)?;
    let _lock = programs::lock(instance)?;
    if !programs::are_loaded(instance)? {
        programs::load(instance, pool)?;
    }
    step::done("native-programs");
    let guests = programs::map(instance, Map::Guests)?;
    let owners = programs::map(instance, Map::Owners)?;
    for address in &network.native {
        if is_anothers(&guests, &owners, &owner_key(*address), id).map_err(fail("ask for"))? {
            return Err(Error::AddressTaken { address: *address });
        }
    }
    loopback::add(guest.loopback6)?;
    let route = Socket::route()?;
    programs::steer(instance, loopback::LO)?;
    for address in &network.native {
        if let Some(interface) = route::local_interface(&route, *address)? {
            programs::steer(instance, interface)?;
        }
    }
    guests.update(&id, &guest.to_bytes()).map_err(fail("add to"))?;
    guest.owned().iter().try_for_each(|key| owners.update(key, &id)).map_err(fail("add to"))
}

/// Whether another guest that runs has an address.
fn is_anothers(
    guests: &bpf::Map,
    owners: &bpf::Map,
    address: &[u8],
    id: [u8; 8],
) -> io::Result<bool> {
    match owners.get(address)? {
        Some(owner) if owner != id => Ok(guests.get(&owner)?.is_some()),
        _ => Ok(false),
    }
}

/// Takes a guest's addresses back after its last process has ended, and removes the programs if it
/// was the last guest. Succeeds if there is nothing to take back.
pub fn dismiss(network: &Network, cgroup: BorrowedFd<'_>) -> Result<(), Error> {
    let (instance, context) = (network.instance, network.context);
    let id = id(cgroup)?;
    let _lock = programs::lock(instance)?;
    if !programs::are_loaded(instance)? {
        return Ok(());
    }
    let guests = programs::map(instance, Map::Guests)?;
    let owners = programs::map(instance, Map::Owners)?;
    let loopback6 = loopback::address6(instance, context);
    guests.delete(&id).map_err(fail("remove from"))?;
    let both = [network_key(loopback::network(instance, context)), owner_key(loopback6.into())];
    for key in network.native.iter().copied().map(owner_key).chain(both) {
        if owners.get(&key).map_err(fail("ask for"))?.is_some_and(|owner| owner == id) {
            owners.delete(&key).map_err(fail("remove from"))?;
        }
    }
    loopback::remove(loopback6)?;
    if guests.is_empty().map_err(fail("ask for"))? { programs::unload(instance) } else { Ok(()) }
}

/// Removes the programs of an instance without running guests.
pub fn destroy(instance: u8) -> Result<(), Error> {
    if !programs::are_loaded(instance)? {
        return Ok(());
    }
    let _lock = programs::lock(instance)?;
    programs::unload(instance)
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
