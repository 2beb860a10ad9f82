use std::os::fd::AsFd;

use super::error::{Error, Result};
use super::handle::Guest;
use super::target::Target;
use crate::config::Signal;

/// Sends a signal to the init of a running guest. The restart policy still applies if that ends it.
///
/// The kernel drops signals that init has no handler for, except SIGKILL and SIGSTOP.
pub fn signal(guest: &Guest<'_>, signal: Signal) -> Result<()> {
    let target = Target::of(guest)?;
    let name = guest.name();
    let init = target.running(guest)?.record.init()?;
    let init = init.ok_or_else(|| Error::NotRunning(name.clone()))?;
    holm_sys::signal::send(init.as_fd(), signal.0)
        .map_err(|error| Error::io("send a signal to", format!("the init of {name}"), error))
}
