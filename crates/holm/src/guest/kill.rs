use super::ending::{CLEAN_UP, Ending};
use super::error::{Error, Result};
use super::handle::Guest;
use super::reconcile::remove_unrecorded;

/// Kills all processes of a guest at once.
pub fn kill(guest: &Guest<'_>) -> Result<()> {
    let ending = match Ending::begin(*guest, None) {
        Err(Error::RecordUnreadable { .. }) => return kill_unrecorded(guest),
        ending => ending?,
    };
    let Some(ending) = ending else { return Ok(()) };
    ending.running.cgroup.kill()?;
    ending.finish()
}

/// Kills a guest whose run record cannot be read: another version of Holm wrote it, or it is
/// damaged.
fn kill_unrecorded(guest: &Guest<'_>) -> Result<()> {
    let locked = guest.lock()?;
    if let Some(cgroup) = guest.cgroup()? {
        cgroup.kill()?;
        cgroup.wait_empty(CLEAN_UP)?;
        remove_unrecorded(&locked, cgroup)?;
    }
    Ok(())
}
