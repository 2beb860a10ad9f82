//! Signals: caught without effect, or waited for.

use core::mem::zeroed;
use core::ptr::null_mut;

/// A signal that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    /// Its number.
    pub number: i32,
    /// The sender; 0 when it is outside this pid namespace, or the kernel.
    pub sender: i32,
}

extern "C" fn nothing(_: i32) {}

/// Lets `signals` interrupt a call and nothing else. Unlike ignored signals these are back to
/// normal after an exec.
pub fn catch(signals: &[i32]) {
    for &signal in signals {
        // SAFETY: the handler does nothing, and an all-zero action is valid: no flags, nothing
        // masked.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
            libc::sigaction(signal, &raw const action, null_mut());
        }
    }
}

/// Unblocks every signal, for a child. Their effects are the default ones as long as nothing
/// is caught.
pub fn unblock_all_signals() {
    // SAFETY: an all-zero set is empty.
    unsafe {
        let none: libc::sigset_t = zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, null_mut());
    }
}

fn all() -> libc::sigset_t {
    // SAFETY: sigfillset writes the set it is given.
    unsafe {
        let mut set = zeroed();
        libc::sigfillset(&raw mut set);
        set
    }
}

/// Blocks every signal; [`wait`] takes those that arrive.
pub fn block_all_signals() {
    let set = all();
    // SAFETY: the set is valid for the call.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, null_mut()) };
}

/// Takes the next pending signal, or `None` after `milliseconds`.
pub fn wait(milliseconds: Option<u32>) -> Option<Signal> {
    let set = all();
    // SAFETY: set, information and time are valid for the calls.
    unsafe {
        let mut info: libc::siginfo_t = zeroed();
        let number = match milliseconds {
            None => libc::sigwaitinfo(&raw const set, &raw mut info),
            Some(ms) => {
                let time = libc::timespec {
                    tv_sec: i64::from(ms / 1000),
                    tv_nsec: i64::from(ms % 1000) * 1_000_000,
                };
                libc::sigtimedwait(&raw const set, &raw mut info, &raw const time)
            }
        };
        (number > 0).then(|| Signal { number, sender: info.si_pid() })
    }
}

/// Has SIGALRM sent to this process every `milliseconds`; 0 disarms the timer.
pub fn arm_timer(milliseconds: u32) {
    let every = libc::timeval {
        tv_sec: i64::from(milliseconds / 1000),
        tv_usec: i64::from(milliseconds % 1000) * 1000,
    };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: the timer is valid for the call.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, null_mut()) };
}
