use std::io;
use std::os::fd::{AsFd, OwnedFd};

use holm_sys::signal::Caught;
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

use super::{Error, Result};
use crate::terminal::{Relay, Terminals};
use holm_proto::{Ended, How};

/// Stands between this process's terminal and the one that `master` is the master of, if there is one; waits for the
/// child and returns how it ended.
pub(crate) fn converse(
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
        // It fails when the caller's terminal is gone; the command hears of that when the master is closed.
        let _ = relay.run(signals);
    }
    wait_for(child, signals)
}

/// Waits for a child, passing on the signals that this process gets; returns how it ended.
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
