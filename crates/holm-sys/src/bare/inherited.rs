//! Descriptors that whoever executed this program left open for it.

use rustix::fd::{BorrowedFd, FromRawFd, OwnedFd};

/// Takes over the descriptor `number`, which goes no further than this program; `None` when it is not open.
///
/// Each number may be taken once, before anything else is opened.
pub fn inherited(number: i32) -> Option<OwnedFd> {
    // SAFETY: F_SETFD touches nothing but the descriptor's flag, and says whether it is open.
    let open = unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == 0;
    // SAFETY: it is open, and by this function's terms nobody else in the program has it.
    open.then(|| unsafe { OwnedFd::from_raw_fd(number) })
}

/// Standard input.
pub fn stdin() -> BorrowedFd<'static> {
    // SAFETY: a program on this module never closes it, and whoever is given a closed one fails with EBADF.
    unsafe { BorrowedFd::borrow_raw(0) }
}

/// Standard error.
pub fn stderr() -> BorrowedFd<'static> {
    // SAFETY: as for `stdin`.
    unsafe { BorrowedFd::borrow_raw(2) }
}
