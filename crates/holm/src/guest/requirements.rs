//! What a start requires of the host.

use std::time::Duration;

use super::error::{Error, Result};
use super::handle::Guest;
use crate::config::Config;
use crate::host::{self, State};
use crate::pool::Pool;
use crate::{Code, Coded, launch, process, rootfs, step};

/// How long the source of a mount may take to answer.
const ANSWER: Duration = Duration::from_secs(20);

/// Replaces the error of a failed start by the requirement that the host does not meet, if there is
/// one: that says more than the call that failed because of it.
pub(super) fn explain(pool: &Pool, error: Error) -> Error {
    let stranded =
        matches!(error, Error::Launch(launch::Error::Process(process::Error::Stranded(_))));
    if stranded || !matches!(error, Error::Start { .. } | Error::Launch(_)) {
        return error;
    }
    let is_full = error.details().code == Code::StorageFull;
    match host::missing_requirement(pool.root()) {
        Some(missing) if missing.name == host::STORAGE => Error::StorageFull(Box::new(missing)),
        // There was no room for a moment, or for this user: the host lacks nothing.
        _ if is_full => error,
        Some(missing) if missing.name == host::FILESYSTEM => {
            Error::UnsupportedRoot(Box::new(missing))
        }
        Some(missing) => Error::RequirementMissing(Box::new(missing)),
        None => error,
    }
}

/// Refuses a root in which nothing can be written.
pub(super) fn check_storage(pool: &Pool) -> Result<()> {
    match host::probe(host::STORAGE, pool.root()) {
        Some(finding) if finding.state == State::Missing => {
            Err(Error::StorageFull(Box::new(finding)))
        }
        _ => Ok(()),
    }
}

/// Refuses a root on a filesystem that cannot hold guests, before anything is made in it.
pub(super) fn check_filesystem(pool: &Pool) -> Result<()> {
    host::unsupported_root(pool.root())
        .map_or(Ok(()), |finding| Err(Error::UnsupportedRoot(Box::new(finding))))
}

/// Looks at the sources of the guest's mounts in a child: a dead network filesystem would keep this
/// process, and the guest locked. For starts that no parent bounds.
pub(super) fn check_mounts_answer(guest: &Guest<'_>, config: &Config) -> Result<()> {
    if config.mounts.is_empty() {
        return Ok(());
    }
    let look = || drop(rootfs::check_host_sources(&[], &config.mounts));
    let limit = step::limit("HOLM_START_MS", ANSWER);
    process::ends_in_child(limit, look)
        .map_err(|error| Error::io("look at the mounts of", guest.name().as_str(), error))?
        .map_err(|how_far| Error::StartStuck { name: guest.name().clone(), time: limit, how_far })
}
