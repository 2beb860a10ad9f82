use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::{ChildEnd, Error, Result};
use crate::terminal::{Terminals, copy_size, is_master, slave};

/// Opens a terminal of the guest's devpts in place of the standard streams that `replaced` names,
/// with the size of `like`. It is not made a controlling terminal. It is opened in the guest's
/// mount namespace: descriptors from another cannot be checkpointed.
pub fn open_console(
    parent: &ChildEnd,
    replaced: Terminals,
    like: Option<BorrowedFd<'_>>,
) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let master = openat(CWD, "/dev/pts/ptmx", flags, Mode::empty())?;
    // In a running guest anything may be mounted there.
    if !is_master(master.as_fd()) {
        return Err(rustix::io::Errno::NOTTY.into());
    }
    let terminal = slave(&master)?;
    if let Some(like) = like {
        copy_size(like, &master);
    }
    parent.offer(master.as_fd());
    if replaced[0] {
        dup2_stdin(&terminal)?;
    }
    if replaced[1] {
        dup2_stdout(&terminal)?;
    }
    if replaced[2] {
        dup2_stderr(&terminal)?;
    }
    Ok((master, terminal))
}

/// Refuses a start for which the host has no pty left. The console of the guest itself counts
/// until it is stopped, but between that and its start another guest may take its place.
pub fn check_console() -> Result<()> {
    no_terminal().map_or(Ok(()), Err)
}

/// The error of a guest that can have no pty, if that is so.
pub(super) fn no_terminal() -> Option<Error> {
    let read = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/pty/{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let (open, max, reserve) = (read("nr")?, read("max")?, read("reserve")?);
    is_exhausted(open, max, reserve).then_some(Error::NoTerminal { open, max, reserve })
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
