//! Recording what a guest has of the host's network, for `holm flows`.

use super::handle::Guest;
use crate::failed::in_one_line;
use crate::flows;
use crate::record::Network;

/// Records what a guest has from now on. A full disk keeps no guest from starting.
pub fn record_begin(guest: &Guest<'_>, network: &Network) {
    report(guest, flows::begin(guest.pool(), guest.name(), network));
}

/// Records that a guest has nothing any more.
pub fn record_end(guest: &Guest<'_>, network: &Network) {
    report(guest, flows::end(guest.pool(), guest.name(), network));
}

fn report(guest: &Guest<'_>, recorded: Result<(), flows::Error>) {
    if let Err(error) = recorded {
        let (name, why) = (guest.name(), in_one_line(&error));
        let message =
            format!("what {name} has of the network is not recorded, for `holm flows`: {why}");
        guest.pool().report_repair(&message);
    }
}
