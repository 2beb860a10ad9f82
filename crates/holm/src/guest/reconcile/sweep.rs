use std::fs;
use std::os::unix::fs::MetadataExt;

use holm_proto::path::MONITOR_SOCKET;

use super::super::error::{Error, Result};
use super::super::handle::Guest;
use super::super::running::{RunningGuest, read_record};
use super::clean_up::clean_up_one_command;
use super::repair::reconcile;
use crate::pool::{Name, Pool};
use crate::record::now;

/// What has no owner may belong to a start that takes this long, in seconds.
const START_MAX: u64 = 10;

/// Reconciles all guests: those that ended when no monitor was there, those that run without a monitor, those of
/// `holm run` without the command. Returns the guests for which that failed: they keep no other from it.
///
/// Looks at every control group and id of the root: for commands that do so anyway.
pub fn sweep(pool: &Pool) -> Result<Vec<(Name, Error)>> {
    let taken = pool.allocated_ids()?;
    let groups = || -> Result<Vec<String>> { Ok(pool.cgroup()?.guests()?) };
    let names = groups()?.into_iter().filter_map(|name| Name::new(&name).ok());
    let broken = names.filter_map(|name| {
        let error = sweep_one(&Guest::new(pool, &name)).err()?;
        Some((name, error))
    });
    let broken = broken.collect();
    // After the ids: whoever has taken one before that has its group by now, or is gone.
    let groups = groups()?;
    for (context, owner) in taken {
        let in_use =
            pool.guest_dir(&owner).is_dir() || groups.iter().any(|group| group == owner.as_str());
        if !in_use {
            pool.release_stale_id(context, START_MAX);
        }
    }
    Ok(broken)
}

/// [`sweep`] for one guest.
pub fn sweep_one(guest: &Guest<'_>) -> Result<()> {
    let Some(cgroup) = guest.cgroup()? else { return Ok(()) };
    let record = match read_record(&cgroup, guest.name()) {
        // `look` reports it; only `kill` does something about it.
        Err(Error::RecordUnreadable { .. }) => return Ok(()),
        record => record?,
    };
    let reachable = guest.run_dir().join(MONITOR_SOCKET).exists();
    if record.as_ref().is_some_and(|it| it.has_monitor() && (it.one_command || reachable)) {
        return Ok(());
    }
    if guest.has_dir() {
        // Whoever has locked it is working on it.
        let Some(locked) = guest.try_lock()? else { return Ok(()) };
        return match reconcile(&locked) {
            // It ends this moment: the next look finds it stopped.
            Ok(_) | Err(Error::Ended(_)) => Ok(()),
            Err(error) => Err(error),
        };
    }
    if record.is_some() {
        return sweep_one_command(guest);
    }
    let pool = guest.pool().cgroup()?;
    let path = pool.layout().v2_root().join(pool.name()).join(guest.name().as_str());
    let made = fs::metadata(path).map_or(0, |data| data.ctime().unsigned_abs());
    if now().saturating_sub(made) > START_MAX {
        cgroup.remove()?;
    }
    Ok(())
}

/// Cleans up after a guest of `holm run` whose command was killed. It has no directory that commands could lock.
fn sweep_one_command(guest: &Guest<'_>) -> Result<()> {
    let _lock = guest.pool().lock("run")?;
    // Another command may have done it, and its name may be another guest's by now.
    let Some(cgroup) = guest.cgroup()? else { return Ok(()) };
    match read_record(&cgroup, guest.name())? {
        Some(record) if !record.has_monitor() => {
            clean_up_one_command(guest, RunningGuest { cgroup, record })
        }
        _ => Ok(()),
    }
}
