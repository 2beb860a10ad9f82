use super::error::Result;
use super::handle::Guest;
use super::target::Target;

/// Freezes all processes of a guest (`true`), or thaws them.
pub fn freeze(guest: &Guest<'_>, frozen: bool) -> Result<()> {
    let target = Target::of(guest)?;
    Ok(target.running(guest)?.cgroup.freeze(frozen)?)
}
