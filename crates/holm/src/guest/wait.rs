use std::time::Duration;

use super::ending::wait_for_clean_up;
use super::error::{Error, Result};
use super::handle::Guest;
use super::target::Target;
use crate::process::ended_within;
use crate::record::{LastRun, now};

/// Waits until a guest has ended, at most `timeout`, and returns how. For an ephemeral guest
/// that is unknown: only its `holm run` learns it.
pub fn wait(guest: &Guest<'_>, timeout: Option<Duration>) -> Result<LastRun> {
    let name = guest.name();
    if let Some(running) = Target::of(guest)?.unlock() {
        let (init, monitor) = (running.record.init()?, running.record.monitor()?);
        let timeout = timeout.unwrap_or(Duration::MAX);
        if let Some(init) = init
            && !ended_within(&init, timeout)?
        {
            let hint = "`holm status` shows what it is doing".to_owned();
            let (name, what) = (name.clone(), "did not end");
            return Err(Error::Timeout { name, what, time: timeout, hint });
        }
        wait_for_clean_up(guest, monitor)?;
        if running.record.ephemeral {
            return Ok(LastRun { ended: "unknown".to_owned(), at: now(), ..LastRun::default() });
        }
    }
    guest.last_run()?.ok_or_else(|| Error::NotRunning(name.clone()))
}
