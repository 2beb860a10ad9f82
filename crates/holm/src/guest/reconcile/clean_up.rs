//! Cleaning up: removing what an ended run has left on the host.

use std::time::{Duration, Instant};

use holm_proto::Ended;

use super::super::error::{Error, Result};
use super::super::flow_record::record_end;
use super::super::handle::{Guest, LockedGuest};
use super::super::restart_policy::wait_before_restart;
use super::super::running::RunningGuest;
use super::monitor_title::is_monitor;
use crate::cgroup::GuestCgroup;
use crate::config::Restart;
use crate::failed::in_one_line;
use crate::launch;
use crate::net;
use crate::pool;
use crate::process::{ended_within, own_pid};
use crate::record::{LastRun, PendingRestart, RunRecord, now};
use crate::rootfs;
use crate::step;

/// How long a monitor that lives may take to note the end of its guest's init.
const END_NOTE: Duration = Duration::from_secs(2);

/// A run of this many seconds resets the backoff of restarts.
const STABLE: u64 = 60;

/// Cleans up after a run that has ended, and records how it ended. If its monitor still runs, a
/// restart of the guest is left to it.
pub fn clean_up(guest: &LockedGuest<'_>, run: RunningGuest) -> Result<()> {
    let record = &run.record;
    wait_for_end_note(guest, record)?;
    let (pending, failure) = if record.is_stopping() || record.monitor_pid == own_pid() {
        (None, None)
    } else if record.has_monitor()? {
        let RunRecord { monitor_pid, monitor_inode, .. } = *record;
        (Some(PendingRestart { at: now(), monitor_pid, monitor_inode }), None)
    } else {
        (None, restart_without_monitor(guest)?)
    };
    clean_up_with(guest, run, |last| {
        let last = LastRun { failure: last.failure.or(failure), ..last };
        if stays_stopped(guest, &last) {
            return LastRun { restarts: 0, ..last };
        }
        LastRun { pending: last.pending.or(pending), ..last }
    })
}

/// Whether it is known that the guest is not restarted: nobody then has to wait until its monitor
/// says so too.
fn stays_stopped(guest: &Guest<'_>, last: &LastRun) -> bool {
    match (guest.config(), Ended::parse(&last.ended)) {
        (Ok((_, config)), Some(ended)) => {
            last.pending.is_none() && wait_before_restart(last, ended, config.restart).is_none()
        }
        _ => false,
    }
}

/// Why a guest that lost its monitor before its init is not started again, although its restart
/// policy may say so. If that cannot be read the cleaning up goes on, and this tells why.
fn restart_without_monitor(guest: &Guest<'_>) -> Result<Option<String>> {
    if !guest.has_dir()? {
        return Ok(None);
    }
    let unread = match guest.config() {
        Ok((_, config)) if config.restart == Restart::No => return Ok(None),
        Ok(_) => String::new(),
        // `status` shows which.
        Err(Error::Config(_)) => ", which cannot be read: guest.toml has a mistake".to_owned(),
        Err(error) => format!(", which could not be read: {}", in_one_line(&error)),
    };
    let name = guest.name();
    Ok(Some(format!(
        "its monitor was killed, so nothing applied restart{unread}; `holm start {name}` starts it"
    )))
}

/// Waits until the monitor has noted how init ended, which it does first of all: whoever comes
/// between the end and the note would record that the status is unknown.
fn wait_for_end_note(guest: &LockedGuest<'_>, record: &RunRecord) -> Result<()> {
    const STEP: Duration = Duration::from_millis(5);
    if record.init_pid == 0 || record.ephemeral || record.monitor_pid == own_pid() {
        return Ok(());
    }
    let Some(monitor) = record.monitor()? else { return Ok(()) };
    if !is_monitor(guest, record.monitor_pid)? {
        return Ok(());
    }
    let begin = Instant::now();
    while guest.end_note(record.init_inode)?.is_none()
        && begin.elapsed() < END_NOTE
        && !ended_within(&monitor, STEP)?
    {}
    Ok(())
}

/// Cleans up after a run that has ended, and records how it ended, completed by `amend`.
///
/// The cgroup is removed last: if this command is killed, the next one finds it and does all
/// of this again.
pub fn clean_up_with(
    guest: &LockedGuest<'_>,
    run: RunningGuest,
    amend: impl FnOnce(LastRun) -> LastRun,
) -> Result<()> {
    if run.record.ephemeral {
        return clean_up_ephemeral(guest, run);
    }
    // A count that cannot be read keeps nothing from being cleaned up; the record says that it is
    // unknown.
    let oom_kills = run.cgroup.oom_kills().ok();
    end_processes_and_network(guest, &run)?;
    if run.record.init_pid != 0 {
        let last = guest.last_run()?.unwrap_or_default();
        let already_recorded = last.run != 0 && last.run == run.record.init_inode;
        let last =
            if already_recorded { last } else { ended_run(guest, &run.record, oom_kills, &last)? };
        match guest.write_last_run(&amend(last)) {
            // A full disk must not keep the guest from being removed, which makes room.
            Err(Error::Pool(pool::Error::Failed(failed))) if failed.is_no_room() => {}
            written => written?,
        }
        step::done("cleanup-recorded");
        guest.remove_end_note();
    }
    remove_cgroup(run.cgroup)?;
    let_go_of_image(guest, &run.record)
}

/// Cleans up after an ephemeral guest, for which nothing is recorded.
pub fn clean_up_ephemeral(guest: &Guest<'_>, run: RunningGuest) -> Result<()> {
    end_processes_and_network(guest, &run)?;
    remove_cgroup(run.cgroup)?;
    let_go_of_image(guest, &run.record)?;
    guest.pool().release_ids(guest.name(), run.record.ids, None);
    Ok(())
}

/// Removes what is left of a guest that has neither processes nor a run record.
pub fn remove_unrecorded(guest: &LockedGuest<'_>, cgroup: GuestCgroup) -> Result<()> {
    let (pool, name) = (guest.pool(), guest.name());
    if let Some(ids) = pool.recorded_ids(&guest.dir())?
        && pool.owns_ids(name, ids)?
    {
        net::detach_unrecorded(pool.instance(), ids.context)?;
    }
    Ok(cgroup.remove()?)
}

fn end_processes_and_network(guest: &Guest<'_>, run: &RunningGuest) -> Result<()> {
    run.cgroup.kill()?;
    step::done("cleanup-killed");
    net::clean_up(&run.record.network)?;
    net::dismiss(&run.record.network, run.cgroup.dir_fd())?;
    record_end(guest, &run.record.network);
    step::done("cleanup-network");
    Ok(())
}

/// After the cgroup: its removal waits for an init that was just killed, which may have inherited
/// the image's lock.
fn let_go_of_image(guest: &Guest<'_>, record: &RunRecord) -> Result<()> {
    if let Some(key) = &record.image {
        rootfs::unmount_unused(&guest.pool().images_dir(), key).map_err(launch::Error::from)?;
        step::done("cleanup-image");
    }
    Ok(())
}

fn remove_cgroup(cgroup: GuestCgroup) -> Result<()> {
    step::done("cleanup-note");
    cgroup.remove()?;
    step::done("cleanup-cgroup");
    Ok(())
}

/// What is known about a run that has ended.
fn ended_run(
    guest: &Guest<'_>,
    record: &RunRecord,
    oom_kills: Option<u64>,
    before: &LastRun,
) -> Result<LastRun> {
    let ended = guest.end_note(record.init_inode)?;
    let lasted = record.age();
    Ok(LastRun {
        run: record.init_inode,
        ended: ended.unwrap_or_else(|| "unknown".to_owned()),
        at: now(),
        lasted,
        oom_kills,
        restarts: if lasted >= STABLE { 0 } else { before.restarts },
        asked: record.is_stopping(),
        ..LastRun::default()
    })
}
