use std::fs;
use std::os::unix::fs::MetadataExt;

use holm_proto::path::MONITOR_SOCKET;

use super::repair::{bury, state_of};
use super::{Error, Result, repaired};
use crate::cgroup::GuestCgroup;
use crate::pool::{self, Name, Pool};
use crate::record::{Ids, now};

/// What has no owner may be in the making for this long, in seconds.
const MAKING: u64 = 10;

/// Puts right what processes of Holm's that were killed have left: guests that ended when nobody
/// watched, guests that run without a monitor, guests of `holm run` without the command. Returns the guests for which
/// that failed: they keep no other from it.
///
/// Looks at every control group and id of the root: for commands that do so anyway.
pub fn sweep(pool: &Pool) -> Result<Vec<(Name, Error)>> {
    let taken = pool.taken_ids()?;
    let groups = || -> Result<Vec<String>> { Ok(pool.cgroup()?.guests()?) };
    let names = groups()?.into_iter().filter_map(|name| Name::new(&name).ok());
    let broken = names.filter_map(|name| {
        let error = sweep_one(pool, &name).err()?;
        Some((name, error))
    });
    let broken = broken.collect();
    // After the ids: whoever has taken one before that has its group by now, or is gone.
    let groups = groups()?;
    for (context, owner) in taken {
        let in_use =
            pool.guest_dir(&owner).is_dir() || groups.iter().any(|group| group == owner.as_str());
        if !in_use {
            pool.release_stale_id(context, MAKING);
        }
    }
    Ok(broken)
}

/// Takes ids by `take`. Those of killed commands are given back first when none is left: who calls neither `ls` nor
/// `release` has nobody else to do it.
pub(super) fn take_ids(pool: &Pool, take: impl Fn() -> pool::Result<Ids>) -> Result<Ids> {
    match take() {
        Err(pool::Error::NoIds { .. }) => {
            sweep(pool)?;
            Ok(take()?)
        }
        taken => Ok(taken?),
    }
}

/// [`sweep`] for one guest.
pub(super) fn sweep_one(pool: &Pool, name: &Name) -> Result<()> {
    let Some(cgroup) = GuestCgroup::open(pool.cgroup()?, name.as_str())? else {
        return Ok(());
    };
    let state = match state_of(&cgroup, name) {
        // Whoever cares is told; only `kill` does something about it.
        Err(Error::State { .. }) => return Ok(()),
        state => state?,
    };
    let reachable = pool.guest_run_dir(name).join(MONITOR_SOCKET).exists();
    if state.as_ref().is_some_and(|state| state.is_watched() && (state.ephemeral || reachable)) {
        return Ok(());
    }
    if pool.guest_dir(name).is_dir() {
        // Whoever has the lock is at work on it.
        return match pool.try_lock_guest(name)? {
            Some(_lock) => match repaired(pool, name) {
                // It ends this moment: the next look finds it stopped.
                Ok(_) | Err(Error::Ended(_)) => Ok(()),
                Err(error) => Err(error),
            },
            None => Ok(()),
        };
    }
    if state.is_some() {
        return bury_run(pool, name);
    }
    let path = pool.cgroup()?.layout().v2_root().join(pool.cgroup()?.name()).join(name.as_str());
    let made = fs::metadata(path).map_or(0, |data| data.ctime().unsigned_abs());
    if now().saturating_sub(made) > MAKING {
        cgroup.remove()?;
    }
    Ok(())
}

/// Removes what is left of a guest of `holm run` whose command was killed. It has no folder that commands could lock.
fn bury_run(pool: &Pool, name: &Name) -> Result<()> {
    let _lock = pool.lock("run")?;
    // Another command may have done it, and its name may be another guest's by now.
    match GuestCgroup::open(pool.cgroup()?, name.as_str())? {
        Some(cgroup) => match state_of(&cgroup, name)? {
            Some(state) if !state.is_watched() => bury(pool, name, cgroup, &state),
            _ => Ok(()),
        },
        None => Ok(()),
    }
}
