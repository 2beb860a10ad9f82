//! System calls that take what the whole machine shares, for tests of who runs out of it.

use std::io;

/// Makes a context for this many asynchronous operations (`io_setup(2)`), which lasts as long as
/// this process.
pub fn aio_context(events: u32) -> io::Result<()> {
    let mut context: libc::c_ulong = 0;
    // SAFETY: the kernel writes one number to `context`, which outlives the call. The ring that it
    // maps into this process is where nothing else is.
    let result = unsafe { libc::syscall(libc::SYS_io_setup, events, &raw mut context) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
