use holm_proto::Ended;

use super::error::Result;
use super::handle::Guest;
use super::running::running;
use crate::exec::{self, Command};

/// Runs a command in a guest that runs, with this process's standard streams; returns how it ended.
/// The caller has one thread.
pub fn exec(guest: &Guest<'_>, command: &Command) -> Result<Ended> {
    let running = running(guest)?;
    Ok(exec::exec(&running.record, &running.cgroup, command)?)
}
