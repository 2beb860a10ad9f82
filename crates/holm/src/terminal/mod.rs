//! The caller's terminal, and pseudo-terminals in guests that stand for it.

mod raw;
mod relay;
#[cfg(test)]
mod tests;

pub use raw::{Raw, copy_size};
pub use relay::Relay;
pub(crate) use relay::write_all;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// A new pseudo-terminal of the devpts whose `ptmx` is at `path`: its master and its slave.
///
/// The slave is reached through the master, not by a name that a guest could have replaced.
pub fn open(path: &Path) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let master = openat(CWD, path, flags, Mode::empty())?;
    let slave = slave(&master)?;
    Ok((master, slave))
}

/// Which of standard input, output and error are, or are to be, terminals.
pub type Terminals = [bool; 3];

/// Which of this process's standard streams are terminals.
pub fn standard_streams() -> Terminals {
    use std::io::{IsTerminal, stderr, stdin, stdout};
    [stdin().is_terminal(), stdout().is_terminal(), stderr().is_terminal()]
}

/// The other end of a pseudo-terminal.
pub fn slave(master: &OwnedFd) -> io::Result<OwnedFd> {
    unlockpt(master)?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    Ok(ioctl_tiocgptpeer(master, flags)?)
}
