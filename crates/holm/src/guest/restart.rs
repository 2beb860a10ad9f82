use std::time::Duration;

use super::decision::Decision;
use super::error::{Error, Result};
use super::handle::{Guest, LockedGuest};
use super::limits::limits;
use super::monitor_process::how_far;
use super::reconcile::reconcile;
use super::requirements::{check_filesystem, check_storage};
use super::running::RunningGuest;
use super::start::{decided, start};
use super::stop::stop;
use crate::config::Config;
use crate::{launch, net, process, rootfs, step};

/// How long the source of a mount may take to answer.
const ANSWER: Duration = Duration::from_secs(20);

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
    let decision = check(&locked, &running).map_err(|source| Error::RestartRefused {
        name: guest.name().clone(),
        source: Box::new(source),
    })?;
    drop(locked);
    match stop(guest, timeout.unwrap_or(decision.config.stop.timeout)) {
        // Until here the decision has kept its base from being removed.
        Ok(_) | Err(Error::NotRunning(_)) => start(guest),
        Err(error) => Err(error),
    }
}

/// Looks whether a running guest could be started as it is set now.
fn check<'a>(guest: &LockedGuest<'a>, running: &RunningGuest) -> Result<Decision<'a>> {
    let (_, config) = guest.config()?;
    check_filesystem(guest.pool())?;
    check_storage(guest.pool())?;
    limits(&config).check_host(guest.pool().cgroup()?.layout())?;
    check_sources_answer(guest, &config)?;
    rootfs::check_host_sources(&config.devices, &config.mounts).map_err(launch::Error::from)?;
    process::check_console()?;
    let decision = decided(guest, config, running.record.ids)?;
    decision.check()?;
    net::check_addresses(&decision.network, &running.record.network)?;
    Ok(decision)
}

/// Looks at the sources of the guest's mounts in a child: a dead network filesystem would keep this
/// process, and the guest locked.
fn check_sources_answer(guest: &Guest<'_>, config: &Config) -> Result<()> {
    if config.mounts.is_empty() {
        return Ok(());
    }
    let look = || drop(rootfs::check_host_sources(&[], &config.mounts));
    let limit = step::limit("HOLM_START_MS", ANSWER);
    process::ends_in_child(limit, look, how_far)
        .map_err(|error| Error::io("look at the mounts of", guest.name().as_str(), error))?
        .map_err(|how_far| Error::StartStuck { name: guest.name().clone(), time: limit, how_far })
}
