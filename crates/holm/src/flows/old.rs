//! Removing the connections of guests that are gone.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::connections;
use super::error::Error;
use crate::Failed;
use crate::pool::{Pool, remove_tree};

/// How many days the connections of a guest stay that does not exist any more.
pub const KEPT_DAYS: u64 = 90;

/// Removes what guests have recorded that do not exist, if nothing was added for [`KEPT_DAYS`].
pub fn remove_old(pool: &Pool) -> Result<(), Error> {
    for (name, path) in connections::guests(pool)? {
        let exists = pool.guest_dir(&name).try_exists();
        let exists = exists.map_err(|error| Failed::new("look at", &path, error))?;
        if !exists && is_old(&path).map_err(|error| Failed::new("look at", &path, error))? {
            let removed = remove_tree(&path);
            removed.map_err(|error| Failed::new("remove", &path, std::io::Error::other(error)))?;
        }
    }
    Ok(())
}

/// Whether all files in a directory, and itself, were last changed so long ago.
fn is_old(directory: &Path) -> std::io::Result<bool> {
    let oldest = SystemTime::now() - Duration::from_hours(24 * KEPT_DAYS);
    let mut newest = std::fs::metadata(directory)?.modified()?;
    for entry in std::fs::read_dir(directory)? {
        newest = newest.max(entry?.metadata()?.modified()?);
    }
    Ok(newest < oldest)
}
