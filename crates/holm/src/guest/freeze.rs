use super::error::Result;
use super::handle::Guest;
use super::target::Target;

/// Stops every process of a guest where it is (`true`), or lets all go on.
pub fn freeze(guest: &Guest<'_>, frozen: bool) -> Result<()> {
    let target = Target::of(guest)?;
    Ok(target.running(guest)?.cgroup.freeze(frozen)?)
}
