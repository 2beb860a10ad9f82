//! Bounds in time.

use holm_sys::bare;
use rustix::time::Timespec;

/// How long a call may hang before a signal interrupts it, in milliseconds.
const TIMEOUT: u32 = 1000;

/// Does `work`, with a timer whose signal interrupts a system call that the guest makes hang.
pub fn bounded<T>(work: impl FnOnce() -> T) -> T {
    bare::arm_timer(TIMEOUT);
    let done = work();
    bare::arm_timer(0);
    done
}

/// Sleeps for this many milliseconds, below 1000.
pub fn pause(milliseconds: i64) {
    let time = Timespec { tv_sec: 0, tv_nsec: milliseconds * 1_000_000 };
    let _ = rustix::event::poll(&mut [], Some(&time));
}
