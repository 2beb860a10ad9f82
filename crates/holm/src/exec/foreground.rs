use std::io;
use std::os::fd::{AsFd, OwnedFd};

use holm_proto::{Ended, How};
use holm_sys::signal::Caught;
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

use super::command::{Command, Streams};
use super::spawn::spawn;
use super::{Error, Result};
use crate::cgroup::GuestCgroup;
use crate::record::RunRecord;
use crate::terminal::{self, Relay, Terminals};

/// Runs a command in a guest with this process's standard streams; returns how it ended. Streams
/// that are terminals are replaced by a terminal of the guest's, and relayed. The caller has one
/// thread.
pub fn exec(record: &RunRecord, cgroup: &GuestCgroup, command: &Command) -> Result<Ended> {
    let signals = Caught::all().map_err(|error| Error::step("catch", "signals", error))?;
    terminal::refuse_directories()
        .map_err(|error| Error::step("pass on", "the standard streams", error))?;
    let terminals = terminal::standard_streams();
    let (child, master) = spawn(record, cgroup, command, Streams::Callers(terminals))?;
    relay_until_exit(&child, master, terminals, &signals)
}

/// Relays between this process's terminal and the one whose master is `master`, if there is one,
/// and passes on signals until the child ends; returns how it ended.
pub(crate) fn relay_until_exit(
    child: &OwnedFd,
    master: Option<OwnedFd>,
    terminals: Terminals,
    signals: &Caught,
) -> Result<Ended> {
    if let Some(master) = master {
        let (input, output, error) = (io::stdin(), io::stdout(), io::stderr());
        let output = match terminals {
            [_, true, _] => output.as_fd(),
            [_, _, true] => error.as_fd(),
            _ => input.as_fd(),
        };
        let relay = Relay {
            master: master.as_fd(),
            command: child.as_fd(),
            input: terminals[0].then_some(input.as_fd()),
            output,
        };
        // It fails when the caller's terminal is gone; closing the master then hangs up on the
        // command.
        let _ = relay.run(signals);
    }
    wait_for(child, signals)
}

/// Waits for a child and passes on the signals that this process gets; returns how it ended.
fn wait_for(child: &OwnedFd, signals: &Caught) -> Result<Ended> {
    let fail = |error| Error::step("wait for", "the command", error);
    while let Some(signal) = signals.wait(child.as_fd()).map_err(fail)? {
        if let Some(signal) = Signal::from_named_raw(signal) {
            let _ = pidfd_send_signal(child, signal);
        }
    }
    let status = waitid(WaitId::PidFd(child.as_fd()), WaitIdOptions::EXITED)
        .map_err(|errno| fail(errno.into()))?;
    let how = status.map_or(How::Unknown, |status| {
        let narrow = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => How::Exited(narrow(code)),
            (None, Some(signal)) => How::Killed(narrow(signal)),
            (None, None) => How::Unknown,
        }
    });
    Ok(Ended { how, adopted: false })
}
