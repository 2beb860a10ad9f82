//! The caller's terminal, and pseudo-terminals in guests that replace it.

mod escape_filter;
mod raw;
mod relay;
#[cfg(test)]
mod tests;

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use escape_filter::EscapeFilter;
pub use escape_filter::GuestOutput;
pub use raw::{Raw, copy_size};
pub use relay::Relay;
pub(crate) use relay::write_all;

use rustix::fs::{FileType, fstat, fstatfs, major, minor};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Which of standard input, output and error are, or are to be, terminals.
pub type Terminals = [bool; 3];

/// Which of this process's standard streams are terminals.
pub fn standard_streams() -> Terminals {
    use std::io::{IsTerminal, stderr, stdin, stdout};
    [stdin().is_terminal(), stdout().is_terminal(), stderr().is_terminal()]
}

/// The first of this process's standard streams among `terminals`.
pub(crate) fn first_of(terminals: Terminals) -> Option<BorrowedFd<'static>> {
    let streams = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    streams.into_iter().zip(terminals).find_map(|(stream, is)| is.then_some(stream))
}

/// Refuses standard streams that are directories: through one a guest could reach the host's root.
pub fn refuse_directories() -> io::Result<()> {
    let streams = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    for stream in streams {
        let kind = fstat(stream).map(|stat| FileType::from_raw_mode(stat.st_mode));
        if kind == Ok(FileType::Directory) {
            return Err(io::Error::new(
                io::ErrorKind::IsADirectory,
                "a directory of the host would lead out of the guest; bind it instead (-v SRC:DST)",
            ));
        }
    }
    Ok(())
}

/// The slave of a pseudo-terminal, reached through its master and not by a name, which a guest
/// could replace.
pub fn slave(master: &OwnedFd) -> io::Result<OwnedFd> {
    unlockpt(master)?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    Ok(ioctl_tiocgptpeer(master, flags)?)
}

/// `f_type` of devpts.
const DEVPTS_MAGIC: i64 = 0x1cd1;

/// Whether this is a pseudo-terminal's master (or /dev/ptmx, by which one is opened), and not a
/// file that a guest has made.
pub(crate) fn is_master(fd: BorrowedFd<'_>) -> rustix::io::Result<bool> {
    let stat = fstat(fd)?;
    let device = (stat.st_mode & 0o170_000, major(stat.st_rdev), minor(stat.st_rdev));
    Ok(device == (0o020_000, 5, 2) && fstatfs(fd)?.f_type == DEVPTS_MAGIC)
}
