use std::fs;

use super::error::{Error, Result};
use super::handle::Guest;
use crate::failed::{is_there, read_if_there};
use crate::system;

/// A file that is in a guest's directory until its first start has succeeded.
pub(super) const NEW: &str = "new";

/// The guest's machine id, and whether it still has to be written into the guest. An ephemeral
/// guest gets a new one at each start.
pub(super) fn machine_id(guest: &Guest<'_>, is_persistent: bool) -> Result<(String, bool)> {
    let fresh = || {
        system::random_id128()
            .map_err(|error| Error::io("read a machine id from", "/dev/urandom", error))
    };
    if !is_persistent {
        return Ok((fresh()?, true));
    }
    let path = guest.dir().join("machine-id");
    let is_first = is_there(&guest.dir().join(NEW))?;
    match read_if_there(&path)? {
        Some(id) if id.trim().len() == 32 => Ok((id.trim().to_owned(), is_first)),
        _ => {
            let id = fresh()?;
            guest.pool().write(&path, &format!("{id}\n"))?;
            Ok((id, is_first))
        }
    }
}

/// Records that the first start has succeeded.
pub(super) fn mark_started(guest: &Guest<'_>) {
    let _ = fs::remove_file(guest.dir().join(NEW));
}
