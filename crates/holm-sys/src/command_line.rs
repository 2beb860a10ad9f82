//! The command line of this process, which `/proc/PID/cmdline` shows to all.

use std::io;
use std::os::raw::c_char;

unsafe extern "C" {
    pub(crate) static mut environ: *const *const c_char;
}

/// Puts `text` in the place of the arguments with which this program was executed; what does not
/// fit is cut off. Refused in a process with several threads.
pub fn overwrite_command_line(text: &[u8]) -> io::Result<()> {
    crate::process::check_single_threaded()?;
    let count = std::env::args_os().len();
    // SAFETY: the kernel puts the pointers to the arguments and a null right below those to the
    // environment (fs/binfmt_elf.c), where `environ` points until somebody changes the environment,
    // which safe code cannot; the strings stand one after the other, in writable memory that is
    // this process's own. Rust's runtime has copied nothing but pointers to them, no other thread
    // can be reading them, and the last still ends in a null.
    unsafe {
        let first = environ.sub(1 + count);
        if count == 0 || !(*environ.sub(1)).is_null() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let start = (*first).cast_mut();
        let last = *first.add(count - 1);
        let length = last.addr() - start.addr() + libc::strlen(last);
        start.write_bytes(0, length);
        start.cast::<u8>().copy_from(text.as_ptr(), text.len().min(length));
    }
    Ok(())
}
