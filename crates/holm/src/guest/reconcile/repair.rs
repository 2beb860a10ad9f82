use holm_proto::path::MONITOR_SOCKET;

use super::super::error::{Error, Result};
use super::super::handle::{Guest, LockedGuest};
use super::super::running::{RunningGuest, read_record, running};
use super::adopt::adopt;
use super::clean_up::{clean_up, remove_unrecorded};
use super::monitor_title::is_monitor;
use crate::failed::is_there;
use crate::process::kill_and_wait;
use crate::record::RunRecord;

/// Finds out whether a guest runs, gives it a new monitor if its own has died, and cleans up if it
/// has ended.
///
/// The guest is locked, so a cgroup without processes and without a monitor does not belong
/// to a start in progress.
pub fn reconcile(guest: &LockedGuest<'_>) -> Result<Option<RunningGuest>> {
    let Some(cgroup) = guest.cgroup()? else { return Ok(None) };
    let Some(record) = read_record(&cgroup, guest.name())? else {
        // The launcher was killed before it had written the record.
        cgroup.kill()?;
        remove_unrecorded(guest, cgroup)?;
        return Ok(None);
    };
    let has_monitor = record.has_monitor()?;
    let mut found = RunningGuest { cgroup, record };
    // Processes without an init or a monitor were left by a killed launcher.
    if !(found.cgroup.populated()? && (has_monitor || found.record.has_init()?)) {
        clean_up(guest, found)?;
        return Ok(None);
    }
    if !has_monitor || kill_unreachable_monitor(guest, &found.record)? {
        adopt(guest, &mut found)?;
        let what = if has_monitor { "could not be reached" } else { "was killed" };
        let name = guest.name();
        guest
            .pool()
            .report_repair(&format!("the monitor of guest {name} {what}; a new one was started"));
    }
    Ok(Some(found))
}

/// Gives a guest, which must be running, a monitor if it has none.
pub fn ensure_monitor(guest: &Guest<'_>) -> Result<()> {
    running(guest)?;
    let locked = guest.lock()?;
    reconcile(&locked)?.map(drop).ok_or_else(|| Error::NotRunning(guest.name().clone()))
}

/// Kills a monitor that nothing can reach any more, because its socket disappeared when /run was
/// wiped. Returns whether the guest has no monitor now.
fn kill_unreachable_monitor(guest: &Guest<'_>, record: &RunRecord) -> Result<bool> {
    if is_there(&guest.run_dir().join(MONITOR_SOCKET))? {
        return Ok(false);
    }
    let Some(process) = record.monitor()? else { return Ok(true) };
    if !is_monitor(guest, record.monitor_pid)? {
        return Ok(false);
    }
    kill_and_wait(&process)?;
    Ok(true)
}
