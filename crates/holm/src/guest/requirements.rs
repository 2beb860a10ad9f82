//! What a start requires of the host.

use super::error::{Error, Result};
use crate::host;
use crate::pool::Pool;

/// Replaces the error of a failed start by the requirement that the host does not meet, if there is
/// one: that says more than the call that failed because of it.
pub(super) fn explain(pool: &Pool, error: Error) -> Error {
    match error {
        Error::Start { .. } | Error::Launch(_) => match host::lack(pool.root()) {
            Some(lack) if lack.name == "filesystem" => Error::UnsupportedRoot(Box::new(lack)),
            Some(lack) => Error::RequirementMissing(Box::new(lack)),
            None => error,
        },
        other => other,
    }
}

/// Refuses a root on a filesystem that cannot hold guests, before anything is made in it.
pub(super) fn check_filesystem(pool: &Pool) -> Result<()> {
    host::unfit(pool.root())
        .map_or(Ok(()), |finding| Err(Error::UnsupportedRoot(Box::new(finding))))
}
