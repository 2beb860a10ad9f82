//! Removing what an ended run has left on the host.

use super::super::error::{Error, Result};
use super::super::handle::{Guest, LockedGuest};
use super::super::running::RunningGuest;
use crate::cgroup::GuestCgroup;
use crate::net;
use crate::pool;
use crate::process::own_pid;
use crate::record::{LastRun, PendingRestart, RunRecord, now};
use crate::step;

/// A guest that ran this long has started well: its restart policy begins to wait anew, in seconds.
const STABLE: u64 = 60;

/// Cleans up after a run that has ended, and notes how that was. What follows is for its monitor to say, if
/// that is still there.
pub fn clean_up(guest: &LockedGuest<'_>, run: RunningGuest) -> Result<()> {
    let record = &run.record;
    let left = (record.has_monitor() && !record.is_stopping() && record.monitor_pid != own_pid())
        .then(|| PendingRestart {
            at: now(),
            monitor_pid: record.monitor_pid,
            monitor_inode: record.monitor_inode,
        });
    clean_up_noting(guest, run, |last| LastRun { pending: last.pending.or(left), ..last })
}

/// The same with a note that says more.
///
/// The control group goes last: as long as it is there, a command that was killed in the midst of this is followed by
/// one that does it again.
pub fn clean_up_noting(
    guest: &LockedGuest<'_>,
    run: RunningGuest,
    note: impl FnOnce(LastRun) -> LastRun,
) -> Result<()> {
    if run.record.one_command {
        return clean_up_one_command(guest, run);
    }
    let oom_kills = run.cgroup.oom_kills().unwrap_or(0);
    end_processes_and_network(&run)?;
    if run.record.init_pid != 0 {
        let last = guest.last_run().unwrap_or_default();
        let noted = last.run != 0 && last.run == run.record.init_inode;
        let last = if noted { last } else { ended_run(guest, &run.record, oom_kills, &last) };
        match guest.write_last_run(&note(last)) {
            // A full disk must not keep a guest from being removed, which makes room.
            Err(Error::Pool(pool::Error::Failed(failed))) if failed.is_no_room() => {}
            noted => noted?,
        }
        step::done("bury-noted");
        guest.remove_end_note();
    }
    remove_cgroup(run.cgroup)
}

/// The same for a guest of `holm run`, of which nothing stays.
pub fn clean_up_one_command(guest: &Guest<'_>, run: RunningGuest) -> Result<()> {
    end_processes_and_network(&run)?;
    remove_cgroup(run.cgroup)?;
    guest.pool().release_ids(guest.name(), run.record.ids, None);
    Ok(())
}

/// Removes what is left of a guest without living processes and without a record.
pub fn remove_unrecorded(guest: &LockedGuest<'_>, cgroup: GuestCgroup) -> Result<()> {
    let (pool, name) = (guest.pool(), guest.name());
    if let Some(ids) = pool.recorded_ids(&guest.dir()).filter(|ids| pool.owns_ids(name, *ids)) {
        net::detach_unrecorded(pool.instance(), ids.context)?;
    }
    Ok(cgroup.remove()?)
}

fn end_processes_and_network(run: &RunningGuest) -> Result<()> {
    run.cgroup.kill()?;
    step::done("bury-killed");
    net::end(&run.record.network)?;
    step::done("bury-network");
    Ok(())
}

fn remove_cgroup(cgroup: GuestCgroup) -> Result<()> {
    step::done("bury-words");
    cgroup.remove()?;
    step::done("bury-group");
    Ok(())
}

/// What is known of a run that has ended.
fn ended_run(guest: &Guest<'_>, record: &RunRecord, oom_kills: u64, before: &LastRun) -> LastRun {
    let ended = guest.end_note(record.init_inode);
    LastRun {
        run: record.init_inode,
        ended: ended.unwrap_or_else(|| "unknown".to_owned()),
        at: now(),
        oom_kills,
        restarts: if record.age() >= STABLE { 0 } else { before.restarts },
        asked: record.is_stopping(),
        ..LastRun::default()
    }
}
