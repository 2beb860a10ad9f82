use std::time::Duration;

use super::folder::{last, set_last};
use super::process;
use super::repair::{bury_noting, state_of};
use super::start::{Start, own_pid};
use super::state::{LONGEST_WAIT, Pending, now};
use super::{Last, Result, State, configured, repaired};
use crate::cgroup::{GuestCgroup, Layout};
use crate::config::Restart;
use crate::monitor::{Ended, How};
use crate::pool::{Name, Pool};
use crate::step;

/// A run this long counts as a success of the restart policy: the waiting begins anew.
const STABLE: u64 = 60;

/// What a monitor does when its guest's init has ended: notes it, cleans up, and starts the guest
/// again if it rebooted or its restart policy says so. Returns when the guest stays stopped.
///
/// The caller is the monitor itself, after it has executed `holm monitor-ended`.
pub fn ended(pool: &Pool, name: &Name, ended: Ended) -> Result<()> {
    let layout = Layout::probe()?;
    let lock = pool.lock_guest(name)?;
    step::done("ended-lock");
    let Some(cgroup) = GuestCgroup::open(&layout, &pool.group(), name.as_str())? else {
        return Ok(());
    };
    let Some(state) = state_of(&cgroup, name)? else { return Ok(()) };
    let restarts = last(pool, name).map_or(0, |last| last.restarts);
    let restarts = if state.age() >= STABLE { 0 } else { restarts };
    let wait = configured(pool, name)
        .ok()
        .and_then(|(_, config)| wait_before_restart(&state, ended, config.restart, restarts));
    let by = own_pid();
    let by_inode = process::inode(by);
    let pending = wait.map(|wait| Pending { at: now() + wait.as_secs(), by, by_inode });
    let restarts = if wait.is_some() { restarts + 1 } else { 0 };
    let note = |last| Last { ended: ended.to_string(), restarts, pending, ..last };
    bury_noting(pool, name, cgroup, &state, note)?;
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

/// How long to wait before the guest is started again; `None` if it stays stopped.
fn wait_before_restart(
    state: &State,
    ended: Ended,
    policy: Restart,
    restarts: u32,
) -> Option<Duration> {
    if state.stopping || ended.is_poweroff() {
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
    Some(Duration::from_secs((1 << restarts.min(6)).min(LONGEST_WAIT)))
}

/// Starts the guest again, unless somebody has called it off or done it meanwhile.
fn start_again(pool: &Pool, name: &Name) -> Result<()> {
    let _lock = pool.lock_guest(name)?;
    let pending = last(pool, name).and_then(|last| last.pending);
    if pending.is_none_or(|pending| pending.by != own_pid()) || repaired(pool, name)?.is_some() {
        return Ok(());
    }
    let started = Start::prepare(pool, name).and_then(Start::become_monitor);
    let Err(error) = started;
    // Nobody reads what this process says: `status` tells it.
    if let Some(last) = last(pool, name) {
        let failure = Some(super::error::in_one_line(&error));
        set_last(pool, name, &Last { pending: None, failure, ..last })?;
    }
    Err(error)
}
