//! Settings that no start could use are refused when they are given.

use std::net::IpAddr;

use super::error::{Error, Result};
use super::handle::Guest;
use super::limits::limits;
use super::machine_id::NEW;
use crate::config::{Config, NetMode};
use crate::disk::Place;
use crate::failed::is_there;
use crate::launch;
use crate::net;
use crate::pool::Name;
use crate::rootfs;
use crate::security;

/// Refuses settings with which the guest could not start on this host.
///
/// Of what the host or other guests may change, only that is looked at which `old` did not have: a
/// device that was unplugged does not keep anybody from changing something else.
pub(super) fn check_settings(guest: &Guest<'_>, old: &Config, new: &Config) -> Result<()> {
    limits(new).check_host(guest.pool().cgroup()?.layout())?;
    if old.disk != new.disk {
        let has_run = guest.has_dir()? && !is_there(&guest.dir().join(NEW))?;
        Place::new(guest.pool(), guest.name(), 0).check(&old.disk, &new.disk, has_run)?;
    }
    if old.base != new.base && is_there(&guest.dir().join("disk").join(rootfs::PLAIN))? {
        return Err(Error::RootIsCopy { name: guest.name().clone(), base: old.base.clone() });
    }
    security::bounding_set(&new.security).map_err(launch::Error::from)?;
    for device in new.devices.iter().filter(|device| !old.devices.contains(device)) {
        rootfs::check_device(device).map_err(launch::Error::from)?;
    }
    let known =
        |address: &&IpAddr| old.net.mode == new.net.mode && old.net.address.contains(address);
    for address in new.net.address.iter().filter(|address| !known(address)) {
        net::check_address(new.net.mode, *address)?;
        if new.net.mode != NetMode::Private {
            continue;
        }
        if let Some(owner) = owner(guest, *address)? {
            return Err(Error::AddressTaken { address: *address, owner });
        }
    }
    Ok(())
}

/// The other guest of this Holm root that has an address: by its settings, or by its context id.
fn owner(guest: &Guest<'_>, address: IpAddr) -> Result<Option<Name>> {
    let pool = guest.pool();
    let context = net::context_of(pool.instance(), address);
    let by_context = pool.allocated_ids()?.into_iter().find(|(id, _)| Some(*id) == context);
    for name in pool.guests()?.into_iter().filter(|name| name != guest.name()) {
        // One with a mistake in its settings cannot start either.
        let Some(config) = Guest::new(pool, &name).usable_config()? else { continue };
        if config.net.mode != NetMode::Private {
            continue;
        }
        let mut own = config.net.address.iter().filter(|own| own.is_ipv6() == address.is_ipv6());
        let has = match own.next() {
            Some(own) => *own == address,
            None => by_context.as_ref().is_some_and(|(_, owner)| *owner == name),
        };
        if has {
            return Ok(Some(name));
        }
    }
    Ok(None)
}
