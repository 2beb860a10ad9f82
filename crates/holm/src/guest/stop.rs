use std::io;
use std::iter::successors;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::ending::Ending;
use super::error::{Error, Result};
use super::handle::Guest;
use crate::exec::exec_with_null_stdio;
use crate::process::ended_within;

/// An init that has run for this many seconds has installed its signal handlers.
const YOUNG: u64 = 10;

/// After this time a young init is asked again.
const RETRY_YOUNG: Duration = Duration::from_millis(500);

/// After this time any init that is asked by a command inside is asked again: on a slow host even
/// an older one may not be listening yet. Signals are not repeated, because a second one may mean
/// something else to the program.
const RETRY_COMMAND: Duration = Duration::from_secs(10);

/// Asks a guest's init to end, waits at most `timeout`, and then kills it. Returns whether it was
/// killed.
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

/// Asks init to end, and returns whether it did within `timeout`.
///
/// An init that has just been started may not be listening yet: the kernel drops a signal that has
/// no handler, and what `/sbin/init 0` writes is lost. Nothing shows when that is over, so a young
/// init is asked repeatedly.
fn ends_when_asked(ending: &Ending<'_>, timeout: Duration) -> Result<bool> {
    let record = &ending.running.record;
    let begin = Instant::now();
    let mut asked = false;
    loop {
        let left = timeout.saturating_sub(begin.elapsed());
        match ask(ending, left) {
            Ok(()) => asked = true,
            Err(error) if record.stop_signal.is_some() && errno(&error) != Some(Errno::SRCH) => {
                return Err(error);
            }
            // The host, or the guest within its limits, is short of something: that may pass.
            Err(error) if asked || is_shortage(&error) => {}
            // It has ended, or the guest itself has made it impossible to ask.
            Err(_) => return Ok(ended_within(&ending.init, Duration::ZERO)?),
        }
        let young = record.age() <= YOUNG && !ending.running.cgroup.ready().unwrap_or(true);
        let pause = match (young, record.stop_signal) {
            (true, _) => RETRY_YOUNG,
            (false, None) => RETRY_COMMAND,
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

fn is_shortage(error: &Error) -> bool {
    matches!(errno(error), Some(Errno::NOMEM | Errno::MFILE | Errno::NFILE | Errno::AGAIN))
}

/// The kernel's error, if there is one among the causes.
fn errno(error: &Error) -> Option<Errno> {
    let mut causes = successors(Some(error as &dyn std::error::Error), |cause| cause.source());
    causes.find_map(|cause| match cause.downcast_ref::<io::Error>() {
        Some(error) => Errno::from_io_error(error),
        None => cause.downcast_ref::<Errno>().copied(),
    })
}

/// Asks once: by a signal, or by a command inside for an init that no signal ends.
fn ask(ending: &Ending<'_>, timeout: Duration) -> Result<()> {
    let running = &ending.running;
    if let Some(signal) = running.record.stop_signal {
        return holm_sys::signal::send(ending.init.as_fd(), signal)
            .map_err(|error| Error::io("send a signal to", "init", error));
    }
    let argv = ["/sbin/init", "0"];
    Ok(exec_with_null_stdio(&running.record, &running.cgroup, &argv, timeout)?)
}
