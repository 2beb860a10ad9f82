use super::error::Result;
use super::handle::{Guest, LockedGuest};
use super::reconcile::sweep;
use crate::pool::{self, Pool};
use crate::record::{Ids, RANGE};

impl LockedGuest<'_> {
    /// The guest's ids. They are allocated if it owns none yet, for example because `create` or
    /// `rename` was killed.
    pub(super) fn ids(&self, nesting: bool) -> Result<Ids> {
        let (pool, name, dir) = (self.pool(), self.name(), self.dir());
        let recorded = pool.recorded_ids(&dir)?;
        if let Some(ids) = recorded
            && nesting == (ids.count > RANGE)
            && pool.owns_ids(name, ids)?
        {
            return Ok(ids);
        }
        let ids = allocate_or_sweep(pool, || pool.allocate_persistent_ids(name, nesting))?;
        pool.write(&dir.join("id"), &format!("{} {}\n", ids.context, ids.count))?;
        // Last, so that no other guest gets ids that this guest's file still names if this command
        // is killed here.
        if let Some(recorded) = recorded {
            pool.release_ids(name, recorded, Some(ids));
        }
        Ok(ids)
    }
}

/// Allocates ids for an ephemeral guest: the first free ones from `first` on.
pub(super) fn allocate_ids(guest: &Guest<'_>, nesting: bool, first: u32) -> Result<Ids> {
    allocate_or_sweep(guest.pool(), || guest.pool().allocate_ids(guest.name(), nesting, first))
}

/// Allocates ids. If none are left, releases those of killed commands and tries again: only `ls`
/// and `release` would do that otherwise.
fn allocate_or_sweep(pool: &Pool, allocate: impl Fn() -> pool::Result<Ids>) -> Result<Ids> {
    match allocate() {
        Err(pool::Error::NoIds { .. }) => {
            sweep(pool)?;
            Ok(allocate()?)
        }
        ids => Ok(ids?),
    }
}
