use std::os::fd::BorrowedFd;

use super::super::error::{Error, Result};
use super::super::handle::Guest;
use super::super::running::read_record;
use super::START_MAX;
use crate::cgroup::GuestCgroup;
use crate::config::NetMode;
use crate::failed::in_one_line;
use crate::net;
use crate::pool;
use crate::record::{Network, RunRecord, now};

/// Something of a guest's network on the host that others may remove while the guest runs.
struct Restored {
    /// Whether a network has it.
    is_wanted: fn(&Network) -> bool,
    /// Whether the guest with this cgroup has it.
    is_there: fn(&Network, BorrowedFd<'_>) -> std::result::Result<bool, net::Error>,
    make: fn(&Network, BorrowedFd<'_>) -> std::result::Result<(), net::Error>,
    /// Its name, and what is said when it was restored.
    name: &'static str,
    said: &'static str,
}

const ALL: [Restored; 3] = [
    Restored {
        is_wanted: |network| !network.access.is_empty(),
        is_there: |network, _| net::has_access_rules(network),
        make: net::set_access_rules,
        name: "net.deny",
        said: "net.deny had been flushed and was restored; until now nothing was refused",
    },
    Restored {
        is_wanted: |network| network.shaping.is_some(),
        is_there: |network, _| net::has_rate(network),
        make: |network, _| net::set_rate(network),
        name: "the rate",
        said: "the qdisc of the uplink had been removed and was restored; until now the guest \
                   had no rate",
    },
    Restored {
        // Those of private guests are restored with their ruleset.
        is_wanted: |network| network.flows && network.mode == NetMode::Native,
        is_there: net::tells_flows,
        make: net::tell_flows,
        name: "net.flows",
        said: "net.flows had been flushed and was restored; until now no connection was recorded",
    },
];

/// Restores the access rules and the rate of a guest that runs if they were removed. Tells that in
/// a sentence, or that it could not, or that a look at them has failed.
pub fn restore(guest: &Guest<'_>, record: &RunRecord) -> Option<String> {
    let mut wanted = ALL.iter().filter(|it| (it.is_wanted)(&record.network)).peekable();
    wanted.peek()?;
    let cgroup = match guest.cgroup() {
        // It has ended since it was looked at.
        Ok(None) => return None,
        Ok(Some(cgroup)) => cgroup,
        Err(error) => {
            return Some(format!("its network was not looked at: {}", in_one_line(&error)));
        }
    };
    let told: Vec<_> = wanted.filter_map(|it| it.restore(guest, record, &cgroup)).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

impl Restored {
    fn restore(
        &self,
        guest: &Guest<'_>,
        record: &RunRecord,
        cgroup: &GuestCgroup,
    ) -> Option<String> {
        match (self.is_there)(&record.network, cgroup.dir_fd()) {
            Ok(true) => return None,
            Ok(false) => {}
            Err(error) => {
                let (name, why) = (self.name, in_one_line(&error));
                return Some(format!("it is not known whether {name} is in effect: {why}"));
            }
        }
        match self.made(guest, record) {
            Ok(false) => None,
            Ok(true) => Some(self.said.to_owned()),
            Err(error) => Some(format!("{} is not in effect: {}", self.name, in_one_line(&error))),
        }
    }

    /// Makes it if the guest is in this network namespace, its start is complete, and no other
    /// command works on it. Returns whether it did.
    fn made(&self, guest: &Guest<'_>, seen: &RunRecord) -> Result<bool> {
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
        // Another command may have ended the guest, or changed its network, since it was looked at.
        let Some(cgroup) = guest.cgroup()? else { return Ok(false) };
        let Some(record) = read_record(&cgroup, guest.name())? else { return Ok(false) };
        let network = &record.network;
        if record.is_stopping()
            || !(self.is_wanted)(network)
            || !cgroup.populated()?
            || !net::is_attached(network)?
            || (self.is_there)(network, cgroup.dir_fd())?
        {
            return Ok(false);
        }
        (self.make)(network, cgroup.dir_fd())?;
        Ok(true)
    }
}
