use super::super::error::{Error, Result};
use super::super::handle::LockedGuest;
use super::super::monitor_process::{MonitorFiles, responder, spawn_monitor};
use super::super::running::{RunningGuest, write_record};
use crate::process::{self, own_pid};
use crate::record::now;
use crate::{launch, monitor};

/// Puts a new monitor beside a running guest whose own has died.
///
/// It is not init's parent: how init ends it learns from the kernel where that tells others (Linux
/// 6.15), and a reboot it cannot tell from a poweroff at all.
pub fn adopt(guest: &LockedGuest<'_>, running: &mut RunningGuest) -> Result<()> {
    let RunningGuest { cgroup, record } = running;
    let init = record.init().ok_or_else(|| Error::Ended(guest.name().clone()))?;
    record.adopted = Some(now());
    // A guest that is about to end has lost its interface already.
    let responder = responder(&record.network).unwrap_or(None);
    let monitor = spawn_monitor(guest, |ready| {
        let console = monitor::orphan_console(record.init_pid, &init);
        let init = launch::Running { pid: record.init_pid, pidfd: init, console };
        let handoff = MonitorFiles::open(guest, cgroup, responder)?.handoff(guest, init, None);
        record.monitor_pid = own_pid();
        record.monitor_inode = process::inode(record.monitor_pid);
        write_record(cgroup, guest.name(), record)?;
        ready();
        Ok(monitor::become_monitor(&handoff)?)
    })?;
    record.monitor_pid = monitor;
    record.monitor_inode = process::inode(monitor);
    Ok(())
}
