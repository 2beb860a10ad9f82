use super::error::{Error, Result};
use super::reconcile::sweep;
use crate::net;
use crate::pool::Pool;

/// Releases a root's host resources: the empty cgroups, the ruleset, the directory in /run
/// and the instance number. Bases and stopped guests stay; the next command in the root acquires
/// the resources again.
///
/// Fails while a guest runs or another command runs in the root.
pub fn release(pool: Pool) -> Result<()> {
    if let Some((_, error)) = sweep(&pool)?.into_iter().next() {
        return Err(error);
    }
    pool.lock_exclusively()?;
    let running = pool.cgroup()?.guests()?;
    if !running.is_empty() {
        return Err(Error::StillRunning(running.join(", ")));
    }
    net::destroy_instance(pool.instance())?;
    pool.cgroup()?.remove()?;
    Ok(pool.release_instance()?)
}
