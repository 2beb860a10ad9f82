//! Interrupting a system call that has no time limit of its own, such as `flock(2)`.

use std::io;
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::Once;
use std::time::Duration;

/// Interrupts the calling thread's system calls (EINTR) again and again, until it is dropped.
///
/// Again and again, because the first signal may come just before the call that it is meant for.
#[derive(Debug)]
pub struct Interrupts(libc::timer_t);

impl Interrupts {
    /// Starts to interrupt every `period`, by SIGALRM. The signal's handler, which does nothing,
    /// stays: another thread's timer may still run when this one has stopped.
    pub fn every(period: Duration) -> io::Result<Self> {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(handle);
        let mut timer = MaybeUninit::uninit();
        // SAFETY: an all-zero sigevent is a valid one; `timer` is written if the call succeeds, and
        // the thread that is named is this one.
        let created = unsafe {
            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGALRM;
            // Not libc's, which a process cloned without it has from its parent.
            event.sigev_notify_thread_id = libc::syscall(libc::SYS_gettid) as libc::pid_t;
            libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, timer.as_mut_ptr())
        };
        if created < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: timer_create has succeeded, so it has written the timer.
        let timer = Self(unsafe { timer.assume_init() });
        let period =
            libc::timespec { tv_sec: period.as_secs() as _, tv_nsec: period.subsec_nanos().into() };
        let schedule = libc::itimerspec { it_interval: period, it_value: period };
        // SAFETY: the timer is this thread's own, and `schedule` lives as long as the call.
        let set = unsafe { libc::timer_settime(timer.0, 0, &raw const schedule, ptr::null_mut()) };
        if set < 0 { Err(io::Error::last_os_error()) } else { Ok(timer) }
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        // SAFETY: the timer was created by `every`, and is deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Makes SIGALRM interrupt system calls, and do nothing else.
fn handle() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: an all-zero sigaction has no flags (SA_RESTART would undo the purpose) and an empty
    // mask; the handler touches nothing, so it may run at any point.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        libc::sigaction(libc::SIGALRM, &raw const action, ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read};

    use super::*;

    #[test]
    fn a_call_that_would_wait_for_ever_is_interrupted() {
        let (read, _write) = rustix::pipe::pipe().unwrap();
        let interrupts = Interrupts::every(Duration::from_millis(10)).unwrap();
        for _ in 0..2 {
            let error = std::fs::File::from(read.try_clone().unwrap()).read(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Interrupted);
        }
        drop(interrupts);
    }
}
