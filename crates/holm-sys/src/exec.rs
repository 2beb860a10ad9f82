//! Executing a program that is a descriptor.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::null;

/// Replaces this program by the one that `image` is; returns only when that fails.
///
/// Every descriptor but 0, 1, 2 and `keep` is closed on the way.
pub fn exec_image(
    image: BorrowedFd<'_>,
    args: &[CString],
    env: &[CString],
    keep: &[BorrowedFd<'_>],
) -> io::Error {
    if let Err(error) = cloexec_from(3) {
        return error;
    }
    for fd in keep {
        // SAFETY: clears one flag of an open descriptor.
        if unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, 0) } < 0 {
            return io::Error::last_os_error();
        }
    }
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|s| s.as_ptr()).chain([null()]).collect()
    };
    let (args, env) = (pointers(args), pointers(env));
    let empty: &CStr = c"";
    // SAFETY: path, arguments and environment are C strings, both arrays end in a null and outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            image.as_raw_fd(),
            empty.as_ptr(),
            args.as_ptr(),
            env.as_ptr(),
            libc::AT_EMPTY_PATH,
        );
    }
    io::Error::last_os_error()
}

/// Marks every descriptor from `first` on to be closed by the next exec.
pub fn cloexec_from(first: u32) -> io::Result<()> {
    // SAFETY: close_range with this flag changes nothing but the descriptors' flag.
    let rc =
        unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Closes every descriptor from `first` on but those of `keep`.
///
/// For a process that is about to execute a program or to end: whatever owned the others must not be
/// used or dropped any more.
pub fn close_all_but(first: u32, keep: &[BorrowedFd<'_>]) -> io::Result<()> {
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

fn close_range(first: u32, last: u32) -> io::Result<()> {
    // SAFETY: closes entries of this process's own table; that their owners are not used any more is the term of the
    // function above.
    let rc = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
