use holm_proto::Ended;

use super::error::Result;
use super::handle::{Guest, LockedGuest};
use super::reconcile::{clean_up_with, reconcile};
use super::restart_policy::wait_before_restart;
use super::running::{RunningGuest, read_record};
use super::start;
use crate::failed::in_one_line;
use crate::process::{self, own_pid};
use crate::record::{LastRun, PendingRestart, now};
use crate::step;

/// Records that a guest's init has ended, cleans up, and restarts the guest if it rebooted or its
/// restart policy says so. Returns if the guest stays stopped.
///
/// Called by the monitor itself, in `holm monitor-ended`.
pub fn end_of_run(guest: &Guest<'_>, ended: Ended) -> Result<()> {
    let locked = guest.lock()?;
    step::done("ended-lock");
    let (policy, failure) = match guest.config() {
        Ok((_, config)) => (Some(config.restart), None),
        Err(error) => (None, Some(in_one_line(&error))),
    };
    // Without it the id alone decides: the end must be recorded in any case.
    let own_inode = process::inode(own_pid()).unwrap_or(0);
    let mut wait = None;
    let note = |last: LastRun| {
        let restart = policy.and_then(|policy| wait_before_restart(&last, ended, policy));
        wait = restart.map(|(wait, _)| wait);
        let pending = wait.map(|wait| PendingRestart {
            at: now() + wait.as_secs(),
            monitor_pid: own_pid(),
            monitor_inode: own_inode,
        });
        let restarts = restart.map_or(0, |(_, restarts)| restarts);
        LastRun { ended: ended.to_string(), restarts, pending, failure, ..last }
    };
    record_own_end(&locked, note)?;
    drop(locked);
    match wait {
        None => Ok(()),
        Some(wait) => {
            std::thread::sleep(wait);
            step::done("ended-wait");
            start_again(guest)
        }
    }
}

/// Records the end of the run whose monitor this process is, and cleans up.
///
/// Another command may have done so already and left only the restart to this process. The guest
/// may even have been started again since.
pub(super) fn record_own_end(
    guest: &LockedGuest<'_>,
    note: impl FnOnce(LastRun) -> LastRun,
) -> Result<()> {
    let own_inode = process::inode(own_pid()).ok();
    let own = |pid, inode| pid == own_pid() && own_inode.is_none_or(|own| inode == own);
    if let Some(cgroup) = guest.cgroup()?
        && let Some(record) = read_record(&cgroup, guest.name())?
        && own(record.monitor_pid, record.monitor_inode)
    {
        return clean_up_with(guest, RunningGuest { cgroup, record }, note);
    }
    match guest.last_run()? {
        Some(last)
            if last.pending.as_ref().is_some_and(|it| own(it.monitor_pid, it.monitor_inode)) =>
        {
            guest.write_last_run(&note(last))
        }
        _ => Ok(()),
    }
}

/// Restarts the guest, unless the pending restart was cancelled or another command has started the
/// guest.
fn start_again(guest: &Guest<'_>) -> Result<()> {
    let locked = guest.lock()?;
    let pending = locked.last_run()?.and_then(|last| last.pending);
    if pending.is_none_or(|pending| pending.monitor_pid != own_pid())
        || reconcile(&locked)?.is_some()
    {
        return Ok(());
    }
    let Err(error) = start::begin_alone(&locked).and_then(start::become_monitor);
    // Recorded for `status`: this process has no output that anybody reads.
    if let Some(last) = locked.last_run()? {
        let failure = Some(in_one_line(&error));
        locked.write_last_run(&LastRun { pending: None, failure, ..last })?;
    }
    Err(error)
}
