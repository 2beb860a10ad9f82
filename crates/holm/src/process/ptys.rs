//! The pseudo-terminals that guests can still have.

use std::cell::RefCell;
use std::fs;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, read, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};

use super::{Error, Result};

/// A pty, held while a guest is stopped and started again: another guest could take the place of
/// its console meanwhile.
///
/// The process that restarts the guest, the launcher and init have a copy each. It is free when
/// init lets go, just before it opens its console.
#[derive(Debug)]
pub struct HeldConsole {
    pty: RefCell<Option<OwnedFd>>,
    /// Readable once no process has `restarter` any more.
    released: OwnedFd,
    restarter: RefCell<Option<OwnedFd>>,
}

impl HeldConsole {
    /// Holds one; an error if guests can have none. `None` where the host has no /dev/ptmx.
    pub fn new() -> Result<Option<Self>> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let pty = match openat(CWD, "/dev/ptmx", flags, Mode::empty()) {
            Err(Errno::NOENT) => return no_terminal(0).map_or(Ok(None), Err),
            Err(errno) => {
                let other = Error::step("open", "/dev/ptmx", errno);
                return Err(no_terminal(0).unwrap_or(other));
            }
            Ok(pty) => pty,
        };
        // The host's reserve, from which this one may be, is not the guest's.
        if let Some(error) = no_terminal(1) {
            return Err(error);
        }
        let (released, restarter) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Error::step("make", "a pipe", errno))?;
        let [pty, restarter] = [pty, restarter].map(|fd| RefCell::new(Some(fd)));
        Ok(Some(Self { pty, released, restarter }))
    }

    /// Lets go of this process's copy.
    pub fn let_go(&self) {
        drop(self.pty.take());
        drop(self.restarter.take());
    }

    /// Is told in the launcher that this is another process than the one that restarts.
    pub fn is_copied(&self) {
        drop(self.restarter.take());
    }

    /// Lets go of the launcher's copy, and waits until init has the only one.
    pub fn leave_to_init(&self) {
        self.let_go();
        let _ = retry_on_intr(|| read(&self.released, &mut [0; 1]));
    }
}

/// The error of a guest that can have no pty, if that is so. `own` of those that are open are to be
/// closed before.
pub(super) fn no_terminal(own: u64) -> Option<Error> {
    let read = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/pty/{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let (open, max, reserve) = (read("nr")?, read("max")?, read("reserve")?);
    is_exhausted(open.saturating_sub(own), max, reserve).then_some(Error::NoTerminal {
        open,
        max,
        reserve,
    })
}

/// Whether a devpts in another mount namespace than the host's gets no further pty: the reserve is
/// the host's, and the kernel counts the new one before it compares.
fn is_exhausted(open: u64, max: u64, reserve: u64) -> bool {
    open + 1 >= max.saturating_sub(reserve)
}

#[cfg(test)]
mod tests {
    use super::is_exhausted;

    #[test]
    fn the_reserve_is_the_hosts() {
        for (open, max, reserve, exhausted) in [
            (0, 4096, 1024, false),
            (3070, 4096, 1024, false),
            (3071, 4096, 1024, true),
            (0, 1024, 1024, true),
            (0, 10, 1024, true),
        ] {
            assert_eq!(is_exhausted(open, max, reserve), exhausted, "{open} {max} {reserve}");
        }
    }
}
