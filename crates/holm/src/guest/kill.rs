use std::time::{Duration, Instant};

use rustix::process::{Signal, pidfd_send_signal};

use super::ending::{CLEAN_UP, Ending};
use super::error::{Error, Result};
use super::handle::Guest;
use super::reconcile::{is_monitor, remove_unrecorded};
use super::running::read_record;

/// How long another command may keep the guest locked before its processes are killed without the
/// lock. Most do for milliseconds, and under the lock the end is recorded as asked for.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long it may keep the guest locked after that.
const LOCKED: Duration = Duration::from_secs(5);

/// Kills all processes of a guest at once, whatever other command has it locked: a start that hangs
/// would keep it locked as long as its init lives.
pub fn kill(guest: &Guest<'_>) -> Result<()> {
    let hangs = !is_unlocked_within(guest, PATIENCE, || Ok(()))?;
    // Each time: a start that hangs may be about to make its init.
    if hangs && !is_unlocked_within(guest, LOCKED, || kill_unlocked(guest))? {
        let name = guest.name();
        guest.pool().report_repair(&format!(
            "all processes of guest {name} were killed; another command has it locked, and is to \
             clean up"
        ));
        return Ok(());
    }
    let ending = match Ending::begin(*guest, None) {
        Err(Error::RecordUnreadable { .. }) => return kill_unrecorded(guest),
        // The command that had it locked has cleaned up.
        Err(Error::NotRunning(_)) if hangs => return Ok(()),
        ending => ending?,
    };
    let Some(ending) = ending else { return Ok(()) };
    ending.running.cgroup.kill()?;
    ending.finish()
}

/// Kills a guest that another command has locked: all its processes, and the launcher that is
/// starting it.
fn kill_unlocked(guest: &Guest<'_>) -> Result<()> {
    let Some(cgroup) = guest.cgroup()? else { return Ok(()) };
    let record = match read_record(&cgroup, guest.name()) {
        Err(Error::RecordUnreadable { .. }) => None,
        record => record?,
    };
    cgroup.kill()?;
    cgroup.wait_empty(CLEAN_UP)?;
    if let Some(record) = record
        && !record.ephemeral
        && let Some(launcher) = record.monitor()?
        // A monitor is left to record the end.
        && !is_monitor(guest, record.monitor_pid)?
    {
        let _ = pidfd_send_signal(&launcher, Signal::KILL);
    }
    Ok(())
}

/// Waits until no other command has the guest locked, and calls `meanwhile` as long as one has;
/// returns whether that was in time.
fn is_unlocked_within(
    guest: &Guest<'_>,
    timeout: Duration,
    meanwhile: impl Fn() -> Result<()>,
) -> Result<bool> {
    const STEP: Duration = Duration::from_millis(10);
    let begin = Instant::now();
    while guest.has_dir()? && guest.try_lock()?.is_none() {
        if begin.elapsed() > timeout {
            return Ok(false);
        }
        meanwhile()?;
        std::thread::sleep(STEP);
    }
    Ok(true)
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
