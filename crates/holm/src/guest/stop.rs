use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::ending::Ending;
use super::error::{Error, Result};
use super::handle::Guest;
use crate::process::ended_within;

/// An init that has run for this many seconds has installed its signal handlers.
const YOUNG: u64 = 10;

/// How long to wait before a young init is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// The same for an older one that is asked by a command inside: on a slow host it may not listen yet either. A second
/// signal may mean more than the first to a program.
const ASK_SELDOM: Duration = Duration::from_secs(10);

/// Asks a guest's init to end, waits at most `timeout`, then kills what is left. Says whether it had
/// to kill.
pub fn stop(guest: &Guest<'_>, timeout: Duration) -> Result<bool> {
    let Some(mut ending) = Ending::begin(*guest, Some(timeout))? else { return Ok(false) };
    ending.running.cgroup.freeze(false)?;
    let killed = !ends_when_asked(&ending, timeout)?;
    if killed {
        ending.kill()?;
    }
    ending.finish()?;
    Ok(killed)
}

/// Asks init to end, and says whether it did within `timeout`.
///
/// One that was started just now may not listen yet, and nothing shows when it does: the kernel drops a signal without
/// a handler, and what `/sbin/init 0` writes is lost. So a young init is asked repeatedly.
fn ends_when_asked(ending: &Ending<'_>, timeout: Duration) -> Result<bool> {
    let record = &ending.running.record;
    let begin = Instant::now();
    let mut asked = false;
    loop {
        let left = timeout.saturating_sub(begin.elapsed());
        asked |= ask(ending, left).is_ok();
        if !asked {
            // It has ended, or cannot be asked by the guest's own doing.
            return Ok(ended_within(&ending.init, Duration::ZERO)?);
        }
        let young = record.age() <= YOUNG && !ending.running.cgroup.ready().unwrap_or(true);
        let pause = match (young, record.stop_signal) {
            (true, _) => ASK_AGAIN,
            (false, None) => ASK_SELDOM,
            (false, Some(_)) => left,
        };
        if ended_within(&ending.init, left.min(pause))? {
            return Ok(true);
        }
        if left <= pause {
            return Ok(false);
        }
    }
}

/// Asks once: by a signal, or by a command for an init that no signal ends.
fn ask(ending: &Ending<'_>, timeout: Duration) -> Result<()> {
    let running = &ending.running;
    if let Some(signal) = running.record.stop_signal {
        return holm_sys::signal::send(ending.init.as_fd(), signal)
            .map_err(|error| Error::io("send a signal to", "init", error));
    }
    crate::exec::quietly(&running.record, &running.cgroup, &["/sbin/init", "0"], timeout)
        .map_err(|error| Error::Inside(Box::new(error)))
}
