use std::time::Duration;

use super::decision::{Decision, decide};
use super::error::{Error, Result};
use super::handle::{Guest, LockedGuest};
use super::limits::limits;
use super::reconcile::reconcile;
use super::requirements::{check_filesystem, check_mounts_answer, check_storage};
use super::running::RunningGuest;
use super::start::{start, start_again};
use super::stop::stop;
use crate::process::HeldConsole;
use crate::{launch, net, rootfs, step};

/// Stops a guest if it runs, within `timeout` or else its own, and starts it.
///
/// A running guest is stopped only if everything that its start needs is there: it would be lost
/// otherwise. The calling process must have a single thread.
pub fn restart(guest: &Guest<'_>, timeout: Option<Duration>) -> Result<()> {
    let locked = guest.lock()?;
    let Some(running) = reconcile(&locked)? else {
        drop(locked);
        return start(guest);
    };
    let (decision, held) = check(&locked, &running).map_err(|source| Error::RestartRefused {
        name: guest.name().clone(),
        source: Box::new(source),
    })?;
    drop(locked);
    match stop(guest, timeout.unwrap_or(decision.config.stop.timeout)) {
        // Until here the decision has kept its base from being removed.
        Ok(_) | Err(Error::NotRunning(_)) => {
            step::done("stopped");
            start_again(guest, held)
        }
        Err(error) => Err(error),
    }
}

/// Looks whether a running guest could be started as it is set now; returns what other guests could
/// take meanwhile.
fn check<'a>(
    guest: &LockedGuest<'a>,
    running: &RunningGuest,
) -> Result<(Decision<'a>, Option<HeldConsole>)> {
    let (_, config) = guest.config()?;
    check_filesystem(guest.pool())?;
    check_storage(guest.pool())?;
    limits(&config).check_host(guest.pool().cgroup()?.layout())?;
    check_mounts_answer(guest, &config)?;
    rootfs::check_host_sources(&config.devices, &config.mounts).map_err(launch::Error::from)?;
    let held = HeldConsole::new()?;
    let ids = running.record.ids;
    let layer = guest.place(ids).look(&config.disk)?;
    let decision = decide(**guest, config, ids, layer, false)?;
    decision.check()?;
    net::check_addresses(&decision.network, &running.record.network)?;
    Ok((decision, held))
}
