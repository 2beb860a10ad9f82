//! Options of sockets.

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

/// Of the kernel's `asm-generic/socket.h`.
const SO_PASSRIGHTS: i32 = 83;

/// Refuses descriptors sent to a Unix socket. Linux has this since 6.16, and returns `ENOPROTOOPT`
/// before.
pub fn take_no_descriptors(socket: impl AsFd) -> Result<(), Errno> {
    let (no, length) = (0_i32, size_of::<i32>() as libc::socklen_t);
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the value is live for the call and of the length given.
    let done = unsafe {
        libc::setsockopt(socket, libc::SOL_SOCKET, SO_PASSRIGHTS, (&raw const no).cast(), length)
    };
    if done == 0 {
        Ok(())
    } else {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
    }
}
