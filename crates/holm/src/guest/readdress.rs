//! Addresses of a native guest that change while it runs.

use super::error::Result;
use super::handle::LockedGuest;
use super::running::RunningGuest;
use crate::config::Config;
use crate::net;
use crate::record::Network;
use crate::step;

/// Gives a guest that runs the addresses of its new settings. Returns whether it has them now; else
/// it gets them when it next starts.
pub fn readdress(
    guest: &LockedGuest<'_>,
    running: &mut RunningGuest,
    old: &Config,
    new: &Config,
) -> Result<bool> {
    if old.net.address == new.net.address {
        return Ok(false);
    }
    let Some(after) = net::changed(&running.record.network, &new.net)? else { return Ok(false) };
    change(guest, running, after)?;
    Ok(true)
}

/// Gives a guest the addresses of a network that it has had.
pub fn restore(guest: &LockedGuest<'_>, running: &mut RunningGuest, to: Network) -> Result<()> {
    if running.record.network == to { Ok(()) } else { change(guest, running, to) }
}

/// The run record names all addresses while they change: whoever cleans up after a command that was
/// killed takes them back.
fn change(guest: &LockedGuest<'_>, running: &mut RunningGuest, after: Network) -> Result<()> {
    let before = running.record.network.clone();
    let mut both = after.clone();
    let more = |it: &&_| !after.native.contains(it);
    both.native.extend(before.native.iter().filter(more));
    both.added.extend(before.added.iter().filter(|it| !after.added.contains(it)));
    running.record.network = both;
    running.write_record(guest.name())?;
    step::done("readdress-recorded");
    let root = running.record.ids.base;
    net::change(&running.record.network, &after, running.cgroup.dir_fd(), root)?;
    step::done("readdressed");
    running.record.network = after;
    running.write_record(guest.name())
}
