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
    // SAFETY: path, arguments and environment are C strings, both arrays end in a null and outlive
    // the call.
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
