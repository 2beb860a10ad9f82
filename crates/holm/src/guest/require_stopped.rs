use super::error::{Error, Result};
use super::handle::LockedGuest;
use super::reconcile::reconcile;

/// Refuses a guest that runs or has a pending restart. `hint` is a remedy other than stopping it.
pub(super) fn require_stopped(guest: &LockedGuest<'_>, hint: &'static str) -> Result<()> {
    let name = guest.name().clone();
    if reconcile(guest)?.is_some() {
        return Err(Error::Running { name, hint });
    }
    match guest.last_run()?.and_then(|last| last.pending) {
        Some(pending) if pending.has_monitor()? => Err(Error::Restarting { name, hint }),
        _ => Ok(()),
    }
}
