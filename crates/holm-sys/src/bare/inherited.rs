//! Descriptors that were open when this program was executed.

use rustix::fd::{BorrowedFd, FromRawFd, OwnedFd};

/// The right to take over what was left open, which the program's entry gives once.
#[derive(Debug)]
pub struct Inherited(());

impl Inherited {
    /// # Safety
    /// Called once, before the program opens anything; what it opens is close-on-exec.
    pub unsafe fn new() -> Inherited {
        Inherited(())
    }

    /// Takes over the descriptor `number`, which goes no further than this program; `None` when it
    /// is not open, was taken already, or is a standard stream.
    pub fn take(&mut self, number: i32) -> Option<OwnedFd> {
        // SAFETY: touches nothing but the descriptor's flags, and says whether it is open.
        let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
        // What came through an exec is not close-on-exec; what was taken or opened since is.
        if number <= 2 || flags != 0 {
            return None;
        }
        // SAFETY: as above; then the descriptor is open, and nobody else in the program has it.
        unsafe {
            libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC);
            Some(OwnedFd::from_raw_fd(number))
        }
    }
}

/// Standard input.
pub fn stdin() -> BorrowedFd<'static> {
    // SAFETY: a program on this module never closes it, and whoever is given a closed one fails
    // with EBADF.
    unsafe { BorrowedFd::borrow_raw(0) }
}

/// Standard error.
pub fn stderr() -> BorrowedFd<'static> {
    // SAFETY: as for `stdin`.
    unsafe { BorrowedFd::borrow_raw(2) }
}
