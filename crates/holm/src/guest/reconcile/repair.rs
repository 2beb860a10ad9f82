use holm_proto::handoff::TITLE;
use holm_proto::path::MONITOR_SOCKET;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, pidfd_send_signal};

use super::super::error::{Error, Result};
use super::super::handle::{Guest, LockedGuest};
use super::super::running::{RunningGuest, read_record, running};
use super::adopt::adopt;
use super::clean_up::{clean_up, remove_unrecorded};
use crate::record::RunRecord;

/// Looks whether a guest runs, puts a monitor beside one that has none, and cleans up after one that has ended.
///
/// The guest is locked, so a control group without a living process and without a monitor is not one that is just
/// being made.
pub fn reconcile(guest: &LockedGuest<'_>) -> Result<Option<RunningGuest>> {
    let Some(cgroup) = guest.cgroup()? else { return Ok(None) };
    let Some(record) = read_record(&cgroup, guest.name())? else {
        // Made, but its launcher was killed before it had recorded anything.
        cgroup.kill()?;
        remove_unrecorded(guest, cgroup)?;
        return Ok(None);
    };
    let has_monitor = record.has_monitor();
    let mut found = RunningGuest { cgroup, record };
    // Without an init, what is there is what a killed launcher has left.
    if !(found.cgroup.populated()? && (has_monitor || found.record.has_init())) {
        clean_up(guest, found)?;
        return Ok(None);
    }
    if !has_monitor || ended_unreachable_monitor(guest, &found.record) {
        adopt(guest, &mut found)?;
        let what = if has_monitor { "could not be reached" } else { "was killed" };
        let name = guest.name();
        guest.pool().notify(&format!("the monitor of guest {name} {what}; a new one was started"));
    }
    Ok(Some(found))
}

/// Puts a monitor beside a guest, which must be running, if it has none.
pub fn ensure_monitor(guest: &Guest<'_>) -> Result<()> {
    running(guest)?;
    let locked = guest.lock()?;
    reconcile(&locked)?.map(drop).ok_or_else(|| Error::NotRunning(guest.name().clone()))
}

/// Ends a monitor whose socket is gone with a wiped /run: nobody can reach it, and it cannot know. Says
/// whether it did.
fn ended_unreachable_monitor(guest: &Guest<'_>, record: &RunRecord) -> bool {
    if guest.run_dir().join(MONITOR_SOCKET).exists() {
        return false;
    }
    let Some(process) = record.monitor() else { return true };
    // A `holm run --keep` waits for its guest itself and has no socket.
    let title = std::fs::read(format!("/proc/{}/cmdline", record.monitor_pid)).unwrap_or_default();
    if !title.starts_with(format!("{TITLE}{}\0", guest.name()).as_bytes()) {
        return false;
    }
    let _ = pidfd_send_signal(&process, Signal::KILL);
    let mut fds = [PollFd::new(&process, PollFlags::IN)];
    let _ = poll(&mut fds, None);
    true
}
