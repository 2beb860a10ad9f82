//! System calls that take what the whole machine shares, for tests of who runs out of it.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

use crate::seccomp::Instruction;

/// Makes a context for this many asynchronous operations (`io_setup(2)`), which lasts as long as
/// this process.
pub fn aio_context(events: u32) -> io::Result<()> {
    let mut context: libc::c_ulong = 0;
    // SAFETY: the kernel writes one number to `context`, which outlives the call. The ring that it
    // maps into this process is where nothing else is.
    let result = unsafe { libc::syscall(libc::SYS_io_setup, events, &raw mut context) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Attaches a filter to a socket, which the kernel compiles and keeps as long as the socket.
pub fn attach_filter(socket: impl AsFd, program: &[Instruction]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let prog = libc::sock_fprog { len, filter: program.as_ptr().cast_mut().cast() };
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: `prog` describes `program`, whose elements have sock_filter's layout; the kernel only
    // reads both, and copies what it keeps.
    let result = unsafe {
        libc::setsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const prog).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
