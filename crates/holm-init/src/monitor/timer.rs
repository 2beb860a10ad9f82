//! Bounds in time.

use holm_sys::bare;
use rustix::time::Timespec;

/// How long a call may hang before a signal ends it, in milliseconds.
const PATIENCE: u32 = 1000;

/// Does `work`, in which the guest may have a call hang, with a timer that ends it.
pub fn bounded<T>(work: impl FnOnce() -> T) -> T {
    bare::arm_timer(PATIENCE);
    let done = work();
    bare::arm_timer(0);
    done
}

/// Leaves the processor to others for so many milliseconds, below 1000.
pub fn pause(milliseconds: i64) {
    let time = Timespec { tv_sec: 0, tv_nsec: milliseconds * 1_000_000 };
    let _ = rustix::event::poll(&mut [], Some(&time));
}
