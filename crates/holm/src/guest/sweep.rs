use std::fs;
use std::os::unix::fs::MetadataExt;

use super::Result;
use super::repair::{alive, bury, state_of};
use super::state::now;
use crate::cgroup::{self, GuestCgroup, Layout};
use crate::pool::{Name, Pool};

/// What has no owner may be in the making for this long, in seconds.
const MAKING: u64 = 10;

/// Removes what `holm run`s that were killed have left: their guests have no folder, hence no lock.
///
/// Looks at every control group and id of the root: for commands that do so anyway.
pub fn sweep(pool: &Pool) -> Result<()> {
    let layout = Layout::probe()?;
    for name in
        cgroup::guests(&layout, &pool.group())?.iter().filter_map(|name| Name::new(name).ok())
    {
        if !pool.guest_dir(&name).is_dir() {
            sweep_one(pool, &layout, &name)?;
        }
    }
    for (context, owner) in pool.taken_ids()? {
        let has_group = GuestCgroup::open(&layout, &pool.group(), owner.as_str())?.is_some();
        if !pool.guest_dir(&owner).is_dir() && !has_group {
            pool.release_stale_id(context, MAKING);
        }
    }
    Ok(())
}

fn sweep_one(pool: &Pool, layout: &Layout, name: &Name) -> Result<()> {
    let Some(cgroup) = GuestCgroup::open(layout, &pool.group(), name.as_str())? else {
        return Ok(());
    };
    if cgroup.populated()? {
        return Ok(());
    }
    match state_of(&cgroup, name)? {
        Some(state) if alive(state.monitor) => Ok(()),
        Some(state) => bury(pool, name, cgroup, &state),
        None => {
            let path = layout.v2_root().join(pool.group()).join(name.as_str());
            let made = fs::metadata(path).map_or(0, |data| data.ctime().unsigned_abs());
            if now().saturating_sub(made) > MAKING {
                cgroup.remove()?;
            }
            Ok(())
        }
    }
}
