use super::super::error::{Error, Result};
use super::super::handle::Guest;
use super::super::running::read_record;
use super::START_MAX;
use crate::failed::in_one_line;
use crate::net;
use crate::pool;
use crate::record::{RunRecord, now};

/// Restores the access rules of a guest that runs if they were flushed. Tells that in a sentence,
/// or that it could not, or that a look at them has failed.
pub fn restore_access(guest: &Guest<'_>, record: &RunRecord) -> Option<String> {
    if record.network.access.is_empty() {
        return None;
    }
    match net::has_access_rules(&record.network) {
        Ok(true) => return None,
        Ok(false) => {}
        Err(error) => {
            let why = in_one_line(&error);
            return Some(format!("it is not known whether net.deny is in effect: {why}"));
        }
    }
    match restored(guest, record) {
        Ok(false) => None,
        Ok(true) => Some(
            "net.deny had been flushed and was restored; until now nothing was refused".to_owned(),
        ),
        Err(error) => Some(format!("net.deny is not in effect: {}", in_one_line(&error))),
    }
}

/// Restores them if the guest is in this network namespace, its start is complete, and no other
/// command works on it. Returns whether it did.
fn restored(guest: &Guest<'_>, seen: &RunRecord) -> Result<bool> {
    let lock = match guest.try_lock() {
        // It is ephemeral, or was removed since it was looked at.
        Err(Error::Pool(pool::Error::NoGuest { .. })) => None,
        lock => lock?,
    };
    let started =
        lock.is_some() || (seen.ephemeral && now().saturating_sub(seen.started) > START_MAX);
    if !started {
        return Ok(false);
    }
    // Another command may have ended the guest, or changed its rules, since it was looked at.
    let Some(cgroup) = guest.cgroup()? else { return Ok(false) };
    let Some(record) = read_record(&cgroup, guest.name())? else { return Ok(false) };
    let network = &record.network;
    if record.is_stopping()
        || !cgroup.populated()?
        || !net::is_attached(network)?
        || net::has_access_rules(network)?
    {
        return Ok(false);
    }
    net::set_access_rules(network)?;
    Ok(true)
}
