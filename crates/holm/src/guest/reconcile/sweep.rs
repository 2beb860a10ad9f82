use std::fs;
use std::os::unix::fs::MetadataExt;

use holm_proto::path::MONITOR_SOCKET;

use super::super::error::{Error, Result};
use super::super::handle::Guest;
use super::super::running::{RunningGuest, read_record};
use super::START_MAX;
use super::clean_up::clean_up_ephemeral;
use super::repair::reconcile;
use crate::failed::{is_there, unless_gone};
use crate::pool::{Name, Pool};
use crate::record::{RunRecord, now};
use crate::{launch, rootfs};

/// Reconciles all guests: those that ended without a monitor, those that run without one, and those
/// whose `holm run` was killed. Returns the guests for which that failed; the others are reconciled
/// nevertheless.
///
/// It also removes what killed commands have left in `tmp`, and unmounts images that no guest uses.
///
/// It looks at every cgroup and id of the root, so it is meant for commands that do so
/// anyway.
pub fn sweep(pool: &Pool) -> Result<Vec<(Name, Error)>> {
    pool.clean_tmp();
    let taken = pool.allocated_ids()?;
    let cgroups = || -> Result<Vec<String>> { Ok(pool.cgroup()?.guests()?) };
    let names = cgroups()?.into_iter().filter_map(|name| Name::new(&name).ok());
    let failed = names.filter_map(|name| {
        let error = sweep_one(&Guest::new(pool, &name)).err()?;
        Some((name, error))
    });
    let failed = failed.collect();
    // Listed after the ids: an owner of one of those has its cgroup by now, or is gone.
    let cgroups = cgroups()?;
    for (context, owner) in taken {
        let in_use = is_there(&pool.guest_dir(&owner))?
            || cgroups.iter().any(|cgroup| cgroup == owner.as_str());
        if !in_use {
            pool.release_stale_id(context, START_MAX);
        }
    }
    rootfs::remove_all_unused(&pool.images_dir()).map_err(launch::Error::from)?;
    Ok(failed)
}

/// Releases the ids in `taken` that belong to none of `names`, which are sorted and were listed
/// after the ids.
pub fn release_unowned(pool: &Pool, taken: &[(u32, Name)], names: &[Name]) {
    for (context, owner) in taken {
        if names.binary_search(owner).is_err() {
            pool.release_stale_id(*context, START_MAX);
        }
    }
}

/// Whether a running guest has a monitor that can be reached: then there is nothing to reconcile.
pub fn is_attended(guest: &Guest<'_>, record: &RunRecord) -> Result<bool> {
    Ok(record.has_monitor()?
        && (record.ephemeral || is_there(&guest.run_dir().join(MONITOR_SOCKET))?))
}

/// Reconciles one guest, unless another command is working on it.
pub fn sweep_one(guest: &Guest<'_>) -> Result<()> {
    let Some(cgroup) = guest.cgroup()? else { return Ok(()) };
    let record = match read_record(&cgroup, guest.name()) {
        // `status` reports it, and `kill` ends the guest.
        Err(Error::RecordUnreadable { .. }) => return Ok(()),
        record => record?,
    };
    if let Some(record) = &record
        && is_attended(guest, record)?
    {
        return Ok(());
    }
    if guest.has_dir()? {
        // If another command has it locked, that command reconciles it.
        let Some(locked) = guest.try_lock()? else { return Ok(()) };
        return match reconcile(&locked) {
            // It has just ended; the next command finds it stopped.
            Ok(_) | Err(Error::Ended(_)) => Ok(()),
            Err(error) => Err(error),
        };
    }
    if record.is_some() {
        return sweep_ephemeral(guest);
    }
    let pool = guest.pool().cgroup()?;
    let path = pool.layout().v2_root().join(pool.name()).join(guest.name().as_str());
    let made =
        unless_gone(fs::metadata(&path)).map_err(|error| Error::io("look at", path, error))?;
    match made {
        Some(made) if now().saturating_sub(made.ctime().unsigned_abs()) > START_MAX => {
            Ok(cgroup.remove()?)
        }
        _ => Ok(()),
    }
}

/// Cleans up after a guest whose `holm run` was killed. It has no directory that could be locked.
fn sweep_ephemeral(guest: &Guest<'_>) -> Result<()> {
    let _lock = guest.pool().lock("run")?;
    // Another command may have done so already, and the name may belong to another guest by now.
    let Some(cgroup) = guest.cgroup()? else { return Ok(()) };
    match read_record(&cgroup, guest.name())? {
        Some(record) if !record.has_monitor()? => {
            clean_up_ephemeral(guest, RunningGuest { cgroup, record })
        }
        _ => Ok(()),
    }
}
