//! Becoming another program without execve(2): its entry function is linked into this one.

use std::ffi::CString;
use std::io;
use std::os::raw::c_char;
use std::ptr::null;

use crate::bare::{Args, Inherited};
use crate::child::ChildProcess;
use crate::command_line::{environ, overwrite_command_line};

/// Runs `program` in this process, called with `arguments` in the environment `env`, and ends with
/// its status.
///
/// As after an exec, descriptors from 3 on are closed and the caller's command line is gone. The
/// process is not dumpable either: reading its memory, which is still the caller's, needs
/// `CAP_SYS_PTRACE` in the user namespace that this program was executed in. Returns only on
/// failure.
pub fn run_without_exec(
    child: &ChildProcess,
    arguments: &[CString],
    env: &[CString],
    program: fn(Args, Inherited) -> i32,
) -> io::Error {
    if let Err(error) = crate::process::check_single_threaded() {
        return error;
    }
    // SAFETY: takes no pointer. A process that may not be dumped may not be traced by its own user
    // either.
    if unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) } < 0 {
        return io::Error::last_os_error();
    }
    let name = arguments.first().map_or(&[][..], |name| name.as_bytes());
    if let Err(error) = overwrite_command_line(name) {
        return error;
    }
    let leak = |strings: &[CString]| -> &'static [*const c_char] {
        let pointers = strings.iter().map(|argument| argument.clone().into_raw().cast_const());
        pointers.chain([null()]).collect::<Vec<_>>().leak()
    };
    let (args, env) = (leak(arguments), leak(env));
    let count = i32::try_from(arguments.len()).unwrap_or(i32::MAX);
    // SAFETY: there is one thread, so nobody reads the environment meanwhile; strings and
    // arrays live as long as the process.
    let args = unsafe {
        environ = env.as_ptr();
        Args::new(count, args.as_ptr())
    };
    // Whatever owned one of these is never used again: `program` is all that is left to run.
    if let Err(error) = child.close_all_but(3, &[]) {
        return error;
    }
    // SAFETY: no descriptor but the standard streams is open any more, and `program` is called
    // once.
    let inherited = unsafe { Inherited::new() };
    crate::process::exit_now(program(args, inherited))
}
