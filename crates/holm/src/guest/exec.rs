use std::time::Duration;

use holm_proto::Ended;

use super::error::{Error, Result};
use super::handle::Guest;
use super::running::running;
use crate::exec::{self, Command};
use crate::process::ended_within;
use crate::record::RunRecord;
use crate::step;

/// How long a guest may take to end whose init refuses new processes already.
const END: Duration = Duration::from_secs(2);

/// Runs a command in a guest that runs, with this process's standard streams; returns how it ended.
/// The caller has one thread.
pub fn exec(guest: &Guest<'_>, command: &Command) -> Result<Ended> {
    let running = running(guest)?;
    step::done("exec-running");
    exec::exec(&running.record, &running.cgroup, command).map_err(|error| {
        let by_guest = matches!(error, exec::Error::Cgroup(_) | exec::Error::Process(_));
        if by_guest && has_ended(&running.record) {
            return Error::NotRunning(guest.name().clone());
        }
        error.into()
    })
}

/// Whether the guest has ended: then the kernel's error is "out of memory", "no such process" or
/// "no such device", and none of them is the reason.
fn has_ended(record: &RunRecord) -> bool {
    match record.init() {
        Ok(Some(init)) => ended_within(&init, END).unwrap_or(false),
        Ok(None) => true,
        Err(_) => false,
    }
}
