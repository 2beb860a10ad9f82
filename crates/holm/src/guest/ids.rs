use super::error::Result;
use super::handle::{Guest, LockedGuest};
use super::reconcile::sweep;
use crate::pool::{self, Pool};
use crate::record::{Ids, RANGE};

impl LockedGuest<'_> {
    /// The guest's ids; taken now if it has none that are its own, as when `create` or `rename` was killed.
    pub(super) fn ids(&self, nesting: bool) -> Result<Ids> {
        let (pool, name, dir) = (self.pool(), self.name(), self.dir());
        let noted = pool.recorded_ids(&dir);
        if let Some(ids) = noted
            && nesting == (ids.count > RANGE)
            && pool.owns_ids(name, ids)
        {
            return Ok(ids);
        }
        let ids = or_sweep(pool, || pool.allocate_kept_ids(name, nesting))?;
        pool::write(&dir.join("id"), &format!("{} {}\n", ids.context, ids.count))?;
        // Last: whatever stops this before, no other guest gets ids that this one's note still names.
        if let Some(noted) = noted {
            pool.release_ids(name, noted, Some(ids));
        }
        Ok(ids)
    }
}

/// Ids for a guest of one command: the first free ones from `first` on.
pub(super) fn allocate_ids(guest: &Guest<'_>, nesting: bool, first: u32) -> Result<Ids> {
    or_sweep(guest.pool(), || guest.pool().allocate_ids(guest.name(), nesting, first))
}

/// Takes ids by `take`. Those of killed commands are given back first when none is left: who calls neither `ls` nor
/// `release` has nobody else to do it.
fn or_sweep(pool: &Pool, take: impl Fn() -> pool::Result<Ids>) -> Result<Ids> {
    match take() {
        Err(pool::Error::NoIds { .. }) => {
            sweep(pool)?;
            Ok(take()?)
        }
        taken => Ok(taken?),
    }
}
