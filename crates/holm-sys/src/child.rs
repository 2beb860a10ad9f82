//! What only a new process may do, before it executes a program or ends.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Proof that this is the child of a [`crate::process::clone()`].
///
/// It permits closing descriptors that other values own: the child has a copy of the whole process,
/// in which only its own code runs. What the type cannot show is for that code to keep to: it uses
/// no descriptor that it has closed, whose number may by now be that of another file, and it ends
/// by an exec or by `exit_now`, which run no destructors.
#[derive(Debug)]
pub struct ChildProcess(());

impl ChildProcess {
    pub(crate) fn new() -> ChildProcess {
        ChildProcess(())
    }

    /// Closes every descriptor from `first` on but those of `keep`.
    pub fn close_all_but(&self, first: u32, keep: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut keep: Vec<u32> = keep.iter().map(|fd| fd.as_raw_fd().unsigned_abs()).collect();
        keep.sort_unstable();
        let mut from = first;
        for kept in keep {
            if kept > from {
                close_range(from, kept - 1)?;
            }
            from = from.max(kept + 1);
        }
        close_range(from, u32::MAX)
    }

    /// Makes descriptor `number` a copy of `fd` that later programs inherit; what it was before is
    /// closed.
    pub fn duplicate_to(&self, fd: BorrowedFd<'_>, number: i32) -> io::Result<()> {
        // SAFETY: replaces an entry of this process's own table, which the type permits.
        let result = unsafe { libc::dup2(fd.as_raw_fd(), number) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

fn close_range(first: u32, last: u32) -> io::Result<()> {
    // SAFETY: closes entries of this process's own table, which the type permits.
    let rc = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
