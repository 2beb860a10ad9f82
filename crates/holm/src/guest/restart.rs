//! Restarting a guest that has ended, by its restart policy.

use std::time::Duration;

use holm_proto::{Ended, How};

use super::error::Result;
use super::handle::Guest;
use super::reconcile::reconcile;
use super::start;
use crate::config::Restart;
use crate::failed::in_one_line;
use crate::process::own_pid;
use crate::record::{LONGEST_WAIT, LastRun};

/// How long to wait before the guest is restarted; `None` if it stays stopped.
pub(super) fn wait_before_restart(
    last: &LastRun,
    ended: Ended,
    policy: Restart,
) -> Option<Duration> {
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

/// Restarts the guest, unless the pending restart was cancelled or another command has started the
/// guest.
pub(super) fn start_again(guest: &Guest<'_>) -> Result<()> {
    let locked = guest.lock()?;
    let pending = locked.last_run()?.and_then(|last| last.pending);
    if pending.is_none_or(|pending| pending.monitor_pid != own_pid())
        || reconcile(&locked)?.is_some()
    {
        return Ok(());
    }
    let Err(error) = start::begin(&locked).and_then(start::become_monitor);
    // Recorded for `status`: this process has no output that anybody reads.
    if let Some(last) = locked.last_run()? {
        let failure = Some(in_one_line(&error));
        locked.write_last_run(&LastRun { pending: None, failure, ..last })?;
    }
    Err(error)
}
