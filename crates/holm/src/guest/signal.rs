use std::os::fd::AsFd;

use super::error::{Error, Result};
use super::handle::Guest;
use super::target::Target;
use crate::config::Signal;

/// Sends the init of a running guest a signal, and nothing else: its restart policy still holds.
///
/// The kernel drops a signal that init has no handler for, but SIGKILL and SIGSTOP.
pub fn signal(guest: &Guest<'_>, signal: Signal) -> Result<()> {
    let target = Target::of(guest)?;
    let name = guest.name();
    let init = target.running(guest)?.record.init();
    let init = init.ok_or_else(|| Error::NotRunning(name.clone()))?;
    holm_sys::signal::send(init.as_fd(), signal.0)
        .map_err(|error| Error::io("send a signal to", format!("the init of {name}"), error))
}
