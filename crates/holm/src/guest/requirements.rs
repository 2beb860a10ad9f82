//! What a start requires of the host.

use super::error::{Error, Result};
use crate::host;
use crate::pool::Pool;

/// Replaces the error of a failed start by the requirement that the host does not meet, if there is
/// one: that says more than the call that failed because of it.
pub(super) fn explain(pool: &Pool, error: Error) -> Error {
    match error {
        Error::Start { .. } | Error::Launch(_) => match host::missing_requirement(pool.root()) {
            Some(missing) if missing.name == host::FILESYSTEM => {
                Error::UnsupportedRoot(Box::new(missing))
            }
            Some(missing) => Error::RequirementMissing(Box::new(missing)),
            None => error,
        },
        other => other,
    }
}

/// Refuses a root on a filesystem that cannot hold guests, before anything is made in it.
pub(super) fn check_filesystem(pool: &Pool) -> Result<()> {
    host::unsupported_root(pool.root())
        .map_or(Ok(()), |finding| Err(Error::UnsupportedRoot(Box::new(finding))))
}
