use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use super::folder::{call_off, last};
use super::repair::{Alive, locked, remove_unknown, repaired, store_state};
use super::{Error, Result};
use crate::cgroup::GuestCgroup;
use crate::config::Signal;
use crate::pool::{Name, Pool};
use crate::process::ended_within;
use crate::record::{LastRun, now, since_boot};

/// How long a monitor may take to clean up after its guest has ended.
const CLEAN_UP: Duration = Duration::from_secs(20);

/// What a command that asks a guest to end may take beyond the guest's time, in seconds. One that was killed no longer
/// counts after that.
const HURRY: u64 = 5;

/// An init that has run for so many seconds has its signal handlers.
const YOUNG: u64 = 10;

/// How long to wait before a young guest's init is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// The same for an older one that only a command inside asks: on a slow host it may not listen yet either. A program that
/// is asked by a signal may take a second one for impatience.
const ASK_SELDOM: Duration = Duration::from_secs(10);

/// Asks a guest's init to end, waits at most `timeout`, then kills what is left. Says whether it had
/// to kill.
pub fn stop(pool: &Pool, name: &Name, timeout: Duration) -> Result<bool> {
    let Some(mut ending) = Ending::begin(pool, name, Some(timeout))? else { return Ok(false) };
    ending.alive.cgroup.freeze(false)?;
    let killed = !ending.asked(timeout)?;
    if killed {
        ending.kill(pool, name)?;
    }
    ending.finish(pool, name)?;
    Ok(killed)
}

/// Kills every process of a guest at once.
pub fn kill(pool: &Pool, name: &Name) -> Result<()> {
    let ending = match Ending::begin(pool, name, None) {
        Err(Error::State { .. }) => return kill_unknown(pool, name),
        ending => ending?,
    };
    let Some(ending) = ending else { return Ok(()) };
    ending.alive.cgroup.kill()?;
    ending.finish(pool, name)
}

/// Ends a guest of which nothing is known, because another version of Holm has noted it or the note is damaged.
fn kill_unknown(pool: &Pool, name: &Name) -> Result<()> {
    let _lock = pool.lock_guest(name)?;
    if let Some(cgroup) = GuestCgroup::open(pool.cgroup()?, name.as_str())? {
        cgroup.kill()?;
        cgroup.wait_empty(CLEAN_UP)?;
        remove_unknown(pool, name, cgroup)?;
    }
    Ok(())
}

/// Sends the init of a running guest a signal, and nothing else: its restart policy still holds.
///
/// The kernel drops a signal that init has no handler for, but SIGKILL and SIGSTOP.
pub fn signal(pool: &Pool, name: &Name, signal: Signal) -> Result<()> {
    let (_lock, alive) = locked(pool, name)?;
    let alive = alive.ok_or_else(|| Error::NotRunning(name.clone()))?;
    let init = alive.state.init().ok_or_else(|| Error::NotRunning(name.clone()))?;
    holm_sys::signal::send(init.as_fd(), signal.0)
        .map_err(|error| Error::io("send a signal to", format!("the init of {name}"), error))
}

/// Stops every process of a guest where it is (`true`), or lets all go on.
pub fn freeze(pool: &Pool, name: &Name, frozen: bool) -> Result<()> {
    let (_lock, alive) = locked(pool, name)?;
    let alive = alive.ok_or_else(|| Error::NotRunning(name.clone()))?;
    Ok(alive.cgroup.freeze(frozen)?)
}

/// Waits until a guest has ended, at most `timeout`, and tells how; of one of `holm run` only that command knows.
pub fn wait(pool: &Pool, name: &Name, timeout: Option<Duration>) -> Result<LastRun> {
    let (lock, alive) = locked(pool, name)?;
    drop(lock);
    if let Some(alive) = alive {
        let (init, monitor) = (alive.state.init(), alive.state.watcher());
        let timeout = timeout.unwrap_or(Duration::MAX);
        if let Some(init) = init
            && !ended_within(&init, timeout)?
        {
            let hint = "`holm status` tells what it does".to_owned();
            let seconds = timeout.as_secs();
            return Err(Error::Timeout { name: name.clone(), what: "did not end", seconds, hint });
        }
        clean_up(pool, name, monitor)?;
        if alive.state.ephemeral {
            return Ok(LastRun { ended: "unknown".to_owned(), at: now(), ..LastRun::default() });
        }
    }
    last(pool, name).ok_or_else(|| Error::NotRunning(name.clone()))
}

/// A guest that a command has begun to end.
struct Ending {
    alive: Alive,
    init: OwnedFd,
    monitor: Option<OwnedFd>,
}

impl Ending {
    /// Notes that the guest is to end and stay so, within `time` if that is given; `None` if it had ended and only
    /// waited for another start, which is called off.
    fn begin(pool: &Pool, name: &Name, time: Option<Duration>) -> Result<Option<Self>> {
        let (lock, alive) = locked(pool, name)?;
        let Some(mut alive) = alive else {
            return if call_off(pool, name)? {
                Ok(None)
            } else {
                Err(Error::NotRunning(name.clone()))
            };
        };
        if lock.is_some() {
            alive.state.stopping = true;
            alive.state.stopping_until =
                time.map(|time| since_boot().saturating_add(time.as_secs()).saturating_add(HURRY));
            store_state(&alive.cgroup, name, &alive.state)?;
        }
        let monitor = alive.state.watcher();
        if let Some(init) = alive.state.init() {
            return Ok(Some(Self { alive, init, monitor }));
        }
        // It ended this moment; its monitor, or this command, cleans up.
        drop(lock);
        clean_up(pool, name, monitor)?;
        Ok(None)
    }

    /// Asks init to end, and says whether it did within `timeout`.
    ///
    /// One that was started just now may not listen yet, and nothing tells when it does: the kernel drops a signal without
    /// a handler, and what `/sbin/init 0` writes is lost. So a young guest is asked repeatedly.
    fn asked(&self, timeout: Duration) -> Result<bool> {
        let begin = Instant::now();
        let mut asked = false;
        loop {
            let left = timeout.saturating_sub(begin.elapsed());
            asked |= self.ask(left).is_ok();
            if !asked {
                // It has ended, or has made itself so that it cannot be asked.
                return Ok(ended_within(&self.init, Duration::ZERO)?);
            }
            let young =
                self.alive.state.age() <= YOUNG && !self.alive.cgroup.ready().unwrap_or(true);
            let pause = match (young, self.alive.state.stop_signal) {
                (true, _) => ASK_AGAIN,
                (false, None) => ASK_SELDOM,
                (false, Some(_)) => left,
            };
            if ended_within(&self.init, left.min(pause))? {
                return Ok(true);
            }
            if left <= pause {
                return Ok(false);
            }
        }
    }

    /// Asks once: by a signal, or by the command that asks an init which no signal asks.
    fn ask(&self, timeout: Duration) -> Result<()> {
        let Alive { state, cgroup } = &self.alive;
        if let Some(signal) = state.stop_signal {
            return holm_sys::signal::send(self.init.as_fd(), signal)
                .map_err(|error| Error::io("send a signal to", "init", error));
        }
        crate::exec::quietly(state, cgroup, &["/sbin/init", "0"], timeout)
            .map_err(|error| Error::Inside(Box::new(error)))
    }

    /// Kills every process of it, when it has not ended in time.
    fn kill(&mut self, pool: &Pool, name: &Name) -> Result<()> {
        let (lock, alive) = match locked(pool, name) {
            Ok((lock, Some(alive))) => (lock, alive),
            // It has just ended.
            Ok((_, None)) | Err(Error::Pool(crate::pool::Error::NoGuest { .. })) => return Ok(()),
            Err(error) => return Err(error),
        };
        if alive.state.init_inode != self.alive.state.init_inode {
            return Ok(());
        }
        self.alive = alive;
        if lock.is_some() {
            self.alive.state.stopping = true;
            self.alive.state.stopping_until = None;
            store_state(&self.alive.cgroup, name, &self.alive.state)?;
        }
        Ok(self.alive.cgroup.kill()?)
    }

    fn finish(self, pool: &Pool, name: &Name) -> Result<()> {
        self.alive.cgroup.wait_empty(CLEAN_UP)?;
        clean_up(pool, name, self.monitor)
    }
}

/// Waits for the monitor to clean up after its guest, and does what it has not done.
fn clean_up(pool: &Pool, name: &Name, monitor: Option<OwnedFd>) -> Result<()> {
    if let Some(monitor) = monitor {
        ended_within(&monitor, CLEAN_UP)?;
    }
    match pool.lock_guest(name) {
        // A guest of one command has no folder.
        Err(crate::pool::Error::NoGuest { .. }) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_lock) => repaired(pool, name).map(drop),
    }
}
