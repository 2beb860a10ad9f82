//! A program without the standard library: its entry, its arguments, processes and signals.
//!
//! `holm-init` is built on this: a monitor and an init cost a few pages each only as long as
//! nothing initialises a runtime, a heap or a thread.

mod args;
mod inherited;
mod process;
mod signal;

pub use args::Args;
pub use inherited::{Inherited, stderr, stdin};
pub use process::{
    Status, abort, exec, exec_argv, exit, exit_status_of, kill, milliseconds, reap, seconds,
    set_comm, spawn,
};
pub use signal::{Signal, arm_timer, block_all_signals, catch, unblock_all_signals, wait};

/// Makes `$main`, a `fn(Args, Inherited) -> i32`, the program's entry, and a panic its end.
///
/// The program opens files close-on-exec: [`Inherited`](bare::Inherited) knows by that what is its
/// own.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        /// The entry that musl's start code calls.
        #[allow(unsafe_code)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn main(argc: i32, argv: *const *const core::ffi::c_char) -> i32 {
            // SAFETY: these are the arguments that the C start code got from the kernel.
            let args = unsafe { $crate::bare::Args::new(argc, argv) };
            // SAFETY: this is the program's entry, where nothing was opened yet.
            let inherited = unsafe { $crate::bare::Inherited::new() };
            let main: fn($crate::bare::Args, $crate::bare::Inherited) -> i32 = $main;
            main(args, inherited)
        }

        #[panic_handler]
        fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
            $crate::bare::abort()
        }
    };
}
