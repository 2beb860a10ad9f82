use std::time::Duration;

use super::folder::{last, set_last};
use super::repair::{bury_noting, state_of};
use super::start::Start;
use super::{Result, configured, repaired};
use crate::cgroup::GuestCgroup;
use crate::config::Restart;
use crate::pool::{Name, Pool};
use crate::process::{self, own_pid};
use crate::record::{LONGEST_WAIT, LastRun, PendingRestart, now};
use crate::step;
use holm_proto::{Ended, How};

/// What a monitor does when its guest's init has ended: notes it, cleans up, and starts the guest
/// again if it rebooted or its restart policy says so. Returns when the guest stays stopped.
///
/// The caller is the monitor itself, after it has executed `holm monitor-ended`.
pub fn ended(pool: &Pool, name: &Name, ended: Ended) -> Result<()> {
    let lock = pool.lock_guest(name)?;
    step::done("ended-lock");
    let policy = configured(pool, name).ok().map(|(_, config)| config.restart);
    let mut wait = None;
    let note = |last: LastRun| {
        wait = policy.and_then(|policy| wait_before_restart(&last, ended, policy));
        let pending = wait.map(|wait| PendingRestart {
            at: now() + wait.as_secs(),
            monitor_pid: own_pid(),
            monitor_inode: process::inode(own_pid()),
        });
        let restarts = if wait.is_some() { last.restarts + 1 } else { 0 };
        LastRun { ended: ended.to_string(), restarts, pending, ..last }
    };
    note_own_end(pool, name, note)?;
    drop(lock);
    match wait {
        None => Ok(()),
        Some(wait) => {
            std::thread::sleep(wait);
            step::done("ended-wait");
            start_again(pool, name)
        }
    }
}

/// Notes the end of the run that this process has watched, and removes what is left of it. The caller holds the
/// guest's lock.
///
/// Another command may have been faster to look, and then leaves the note to this one; the guest may even have been
/// started again.
pub(super) fn note_own_end(
    pool: &Pool,
    name: &Name,
    note: impl FnOnce(LastRun) -> LastRun,
) -> Result<()> {
    let own = |pid, inode| pid == own_pid() && inode == process::inode(pid);
    if let Some(cgroup) = GuestCgroup::open(pool.cgroup()?, name.as_str())?
        && let Some(state) = state_of(&cgroup, name)?
        && own(state.monitor_pid, state.monitor_inode)
    {
        return bury_noting(pool, name, cgroup, &state, note);
    }
    match last(pool, name) {
        Some(last)
            if last.pending.as_ref().is_some_and(|it| own(it.monitor_pid, it.monitor_inode)) =>
        {
            set_last(pool, name, &note(last))
        }
        _ => Ok(()),
    }
}

/// How long to wait before the guest is started again; `None` if it stays stopped.
fn wait_before_restart(last: &LastRun, ended: Ended, policy: Restart) -> Option<Duration> {
    if last.asked || ended.is_poweroff() {
        return None;
    }
    if ended.is_reboot() {
        return Some(Duration::ZERO);
    }
    let failed = ended.how != How::Exited(0);
    match policy {
        Restart::No => return None,
        Restart::OnFailure if !failed => return None,
        Restart::OnFailure | Restart::Always => {}
    }
    // A second, then twice as long each time.
    Some(Duration::from_secs((1 << last.restarts.min(6)).min(LONGEST_WAIT)))
}

/// Starts the guest again, unless somebody has called it off or done it meanwhile.
fn start_again(pool: &Pool, name: &Name) -> Result<()> {
    let _lock = pool.lock_guest(name)?;
    let pending = last(pool, name).and_then(|last| last.pending);
    if pending.is_none_or(|pending| pending.monitor_pid != own_pid())
        || repaired(pool, name)?.is_some()
    {
        return Ok(());
    }
    let started = Start::prepare(pool, name).and_then(Start::become_monitor);
    let Err(error) = started;
    // Nobody reads what this process says: `status` tells it.
    if let Some(last) = last(pool, name) {
        let failure = Some(super::error::in_one_line(&error));
        set_last(pool, name, &LastRun { pending: None, failure, ..last })?;
    }
    Err(error)
}
