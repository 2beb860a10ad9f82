use holm_proto::handoff::TITLE;
use holm_proto::path::MONITOR_SOCKET;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, pidfd_send_signal};

use super::adopt::adopt;
use super::{Error, Result, folder};
use crate::cgroup::GuestCgroup;
use crate::net;
use crate::pool::{Lock, Name, Pool};
use crate::process::own_pid;
use crate::record::{LastRun, PendingRestart, RunRecord, now};
use crate::step;

/// A guest that has a control group, and what is known of it.
#[derive(Debug)]
pub struct Alive {
    /// Its control group.
    pub cgroup: GuestCgroup,
    /// Its state.
    pub state: RunRecord,
}

/// Looks whether a guest runs, and removes what one that no longer does has left behind.
///
/// The caller holds the guest's lock, so a control group without a living process and without a
/// monitor is not one that is just being made.
pub(crate) fn repaired(pool: &Pool, name: &Name) -> Result<Option<Alive>> {
    let Some(cgroup) = GuestCgroup::open(pool.cgroup()?, name.as_str())? else {
        return Ok(None);
    };
    let state = state_of(&cgroup, name)?;
    if let Some(state) = state {
        let watched = state.is_watched();
        // Without an init, what is there is what a killed launcher has left.
        if cgroup.populated()? && (watched || state.init_runs()) {
            let mut found = Alive { cgroup, state };
            if !watched || retired(pool, name, &found.state) {
                adopt(pool, name, &mut found)?;
                let lack = if watched { " that could be reached" } else { ", it was killed" };
                pool.tell(&format!("guest {name} had no monitor{lack}; a new one watches it now"));
            }
            return Ok(Some(found));
        }
        bury(pool, name, cgroup, &state)?;
        return Ok(None);
    }
    // Made, but its launcher was killed before it had a process to speak of.
    cgroup.kill()?;
    remove_unknown(pool, name, cgroup)?;
    Ok(None)
}

/// A guest's lock, and the guest if it runs.
///
/// One of `holm run` has no folder and no lock: the command that waits for it cleans up after it.
pub(super) fn locked(pool: &Pool, name: &Name) -> Result<(Option<Lock>, Option<Alive>)> {
    match pool.lock_guest(name) {
        Ok(lock) => Ok((Some(lock), repaired(pool, name)?)),
        Err(none @ crate::pool::Error::NoGuest { .. }) => match running(pool, name) {
            Ok((cgroup, state)) if state.ephemeral && state.is_watched() => {
                Ok((None, Some(Alive { cgroup, state })))
            }
            _ => Err(none.into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// Removes what is left of a guest without living processes and without a note about it.
pub(super) fn remove_unknown(pool: &Pool, name: &Name, cgroup: GuestCgroup) -> Result<()> {
    if let Some(ids) = pool.read_ids(&pool.guest_dir(name)).filter(|ids| pool.own_ids(name, *ids)) {
        net::detach_unrecorded(pool.instance(), ids.context)?;
    }
    Ok(cgroup.remove()?)
}

/// The control group and the state of a guest that runs.
pub(crate) fn running(pool: &Pool, name: &Name) -> Result<(GuestCgroup, RunRecord)> {
    let cgroup = GuestCgroup::open(pool.cgroup()?, name.as_str())?;
    if let Some(cgroup) = cgroup
        && let Some(state) = state_of(&cgroup, name)?
        && cgroup.populated()?
    {
        return Ok((cgroup, state));
    }
    if pool.guest_dir(name).is_dir() {
        return Err(Error::NotRunning(name.clone()));
    }
    Err(crate::pool::Error::NoGuest { name: name.clone(), known: pool.guests()? }.into())
}

/// Sees to it that a guest, which must be running, has a monitor.
pub fn watched(pool: &Pool, name: &Name) -> Result<()> {
    running(pool, name)?;
    let _lock = pool.lock_guest(name)?;
    repaired(pool, name)?.map(|_| ()).ok_or_else(|| Error::NotRunning(name.clone()))
}

/// Keeps a changed state on a guest's control group.
pub(super) fn store_state(cgroup: &GuestCgroup, name: &Name, state: &RunRecord) -> Result<()> {
    let text = serde_json::to_vec(state)
        .map_err(|source| Error::State { name: name.to_string(), source })?;
    Ok(cgroup.set_state(&text)?)
}

/// The state kept on a control group; `None` while the guest is being made.
pub(crate) fn state_of(cgroup: &GuestCgroup, name: &Name) -> Result<Option<RunRecord>> {
    let Some(bytes) = cgroup.state()? else { return Ok(None) };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|source| Error::State { name: name.to_string(), source })
}

/// Removes what is left of a guest that has ended, and notes how that was. What follows is for its monitor to say, if
/// that is still there.
pub(super) fn bury(pool: &Pool, name: &Name, cgroup: GuestCgroup, state: &RunRecord) -> Result<()> {
    let left =
        (state.is_watched() && !state.is_stopping() && state.monitor_pid != own_pid()).then(|| {
            PendingRestart {
                at: now(),
                monitor_pid: state.monitor_pid,
                monitor_inode: state.monitor_inode,
            }
        });
    bury_noting(pool, name, cgroup, state, |last| LastRun {
        pending: last.pending.or(left),
        ..last
    })
}

/// The same with a note that says more.
///
/// The control group goes last: as long as it is there, a command that was killed in the midst of this is followed by
/// one that does it again.
pub(super) fn bury_noting(
    pool: &Pool,
    name: &Name,
    cgroup: GuestCgroup,
    state: &RunRecord,
    note: impl FnOnce(LastRun) -> LastRun,
) -> Result<()> {
    let oom_kills = cgroup.oom_kills().unwrap_or(0);
    cgroup.kill()?;
    step::done("bury-killed");
    net::end(&state.network)?;
    step::done("bury-network");
    if !state.ephemeral && state.init_pid != 0 {
        let last = folder::last(pool, name).unwrap_or_default();
        let noted = last.run != 0 && last.run == state.init_inode;
        let last = if noted { last } else { ended(pool, name, state, oom_kills, &last) };
        match folder::set_last(pool, name, &note(last)) {
            // A full disk must not keep a guest from being removed, which makes room.
            Err(Error::Pool(crate::pool::Error::Failed(failed))) if failed.is_no_room() => {}
            noted => noted?,
        }
        step::done("bury-noted");
        let _ = std::fs::remove_file(folder::ended_path(pool, name));
    }
    step::done("bury-words");
    cgroup.remove()?;
    step::done("bury-group");
    if state.ephemeral {
        pool.release_ids(name, state.ids, None);
    }
    Ok(())
}

/// A guest that ran this long has started well: its restart policy begins to wait anew.
const STABLE: u64 = 60;

/// What is known of a run that has ended.
fn ended(pool: &Pool, name: &Name, state: &RunRecord, oom_kills: u64, before: &LastRun) -> LastRun {
    let words = folder::ended(pool, name, state.init_inode);
    LastRun {
        run: state.init_inode,
        ended: words.unwrap_or_else(|| "unknown".to_owned()),
        at: now(),
        oom_kills,
        restarts: if state.age() >= STABLE { 0 } else { before.restarts },
        asked: state.is_stopping(),
        ..LastRun::default()
    }
}

/// Ends a monitor whose socket is gone with a wiped /run: nobody can reach it, and it cannot know. Says
/// whether it did.
fn retired(pool: &Pool, name: &Name, state: &RunRecord) -> bool {
    if pool.guest_run_dir(name).join(MONITOR_SOCKET).exists() {
        return false;
    }
    let Some(process) = state.watcher() else { return true };
    // A `holm run --keep` waits for its guest itself and has no socket.
    let title = std::fs::read(format!("/proc/{}/cmdline", state.monitor_pid)).unwrap_or_default();
    if !title.starts_with(format!("{TITLE}{name}\0").as_bytes()) {
        return false;
    }
    let _ = pidfd_send_signal(&process, Signal::KILL);
    let mut fds = [PollFd::new(&process, PollFlags::IN)];
    let _ = poll(&mut fds, None);
    true
}
