use super::error::{Error, Result};
use super::reconcile::sweep;
use crate::net;
use crate::pool::Pool;

/// Removes what a root has on the host beyond its own folder: the empty control groups, the packet filter's table,
/// the folder in /run, the instance number. Its bases and stopped guests stay, and the next command in the root makes
/// all of it again.
///
/// An error while a guest runs, or another command is at work in the root.
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
