use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::ChildEnd;
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
    if !is_master(master.as_fd())? {
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
