//! Addresses, access rules and rates of a guest that change while it runs.

use super::error::Result;
use super::flow_record::record_begin;
use super::handle::LockedGuest;
use super::running::RunningGuest;
use crate::config::Config;
use crate::net;
use crate::record::Network;
use crate::step;

/// What a guest that runs has of its new settings; the rest it gets when it next starts.
#[derive(Debug, Clone, Copy, Default)]
pub struct AtOnce {
    /// `net.address`.
    pub addresses: bool,
    /// `net.deny` and `net.allow`.
    pub access: bool,
    /// `net.reserve`, `net.share` and `net.cap`.
    pub rates: bool,
}

/// Gives a guest that runs the addresses, access rules and rates of its new settings.
pub fn change_network(
    guest: &LockedGuest<'_>,
    running: &mut RunningGuest,
    old: &Config,
    new: &Config,
) -> Result<AtOnce> {
    let (old, new) = (&old.net, &new.net);
    let mut at_once = AtOnce::default();
    if old.address != new.address
        && let Some(after) = net::readdressed(&running.record.network, new)?
    {
        change(guest, running, after)?;
        at_once.addresses = true;
    }
    if (&old.deny, &old.allow) != (&new.deny, &new.allow)
        && let Some(after) = net::with_access(&running.record.network, new)
    {
        change(guest, running, after)?;
        at_once.access = true;
    }
    if (old.reserve, old.share, old.cap) != (new.reserve, new.share, new.cap)
        && let Some(after) = net::reshaped(&running.record.network, new)?
    {
        change(guest, running, after)?;
        at_once.rates = true;
    }
    Ok(at_once)
}

/// Gives a guest a network that it has had.
pub fn restore(guest: &LockedGuest<'_>, running: &mut RunningGuest, to: Network) -> Result<()> {
    if running.record.network == to { Ok(()) } else { change(guest, running, to) }
}

/// The run record names all addresses and access rules while they change, and a rate before and
/// after the guest has it: whoever cleans up after a command that was killed takes them back.
fn change(guest: &LockedGuest<'_>, running: &mut RunningGuest, after: Network) -> Result<()> {
    let before = running.record.network.clone();
    let mut both = after.clone();
    let more = |it: &&_| !after.native.contains(it);
    both.native.extend(before.native.iter().filter(more));
    both.added.extend(before.added.iter().filter(|it| !after.added.contains(it)));
    if both.access.is_empty() {
        both.access = before.access.clone();
    }
    both.shaping = after.shaping.clone().or(before.shaping.clone());
    running.record.network = both;
    running.write_record(guest.name())?;
    step::done("network-recorded");
    if before.native != after.native {
        // Both while it changes.
        record_begin(guest, &running.record.network);
    }
    let root = running.record.ids.base;
    net::change(&before, &after, running.cgroup.dir_fd(), root)?;
    step::done("network-changed");
    if before.native != after.native {
        record_begin(guest, &after);
    }
    running.record.network = after;
    running.write_record(guest.name())
}
