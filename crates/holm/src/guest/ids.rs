use super::error::Result;
use super::handle::{Guest, LockedGuest};
use super::reconcile::sweep;
use crate::pool::{self, Pool};
use crate::record::{Ids, RANGE};

impl LockedGuest<'_> {
    /// The guest's ids; allocated now if it has none that are its own, as when `create` or `rename` was killed.
    pub(super) fn ids(&self, nesting: bool) -> Result<Ids> {
        let (pool, name, dir) = (self.pool(), self.name(), self.dir());
        let recorded = pool.recorded_ids(&dir);
        if let Some(ids) = recorded
            && nesting == (ids.count > RANGE)
            && pool.owns_ids(name, ids)
        {
            return Ok(ids);
        }
        let ids = or_sweep(pool, || pool.allocate_kept_ids(name, nesting))?;
        pool::write(&dir.join("id"), &format!("{} {}\n", ids.context, ids.count))?;
        // Last: if this is killed before, no other guest gets ids that the file still names.
        if let Some(recorded) = recorded {
            pool.release_ids(name, recorded, Some(ids));
        }
        Ok(ids)
    }
}

/// Ids for a guest of one command: the first free ones from `first` on.
pub(super) fn allocate_ids(guest: &Guest<'_>, nesting: bool, first: u32) -> Result<Ids> {
    or_sweep(guest.pool(), || guest.pool().allocate_ids(guest.name(), nesting, first))
}

/// Allocates ids by `allocate`. When none is left, those of killed commands are released first: somebody who calls
/// neither `ls` nor `release` has no other command that does it.
fn or_sweep(pool: &Pool, allocate: impl Fn() -> pool::Result<Ids>) -> Result<Ids> {
    match allocate() {
        Err(pool::Error::NoIds { .. }) => {
            sweep(pool)?;
            Ok(allocate()?)
        }
        ids => Ok(ids?),
    }
}
