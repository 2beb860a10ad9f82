//! Signals as something to wait for, beside a process.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::event::{PollFd, PollFlags, poll};

/// Sends the process behind `pidfd` a signal by its number, real-time ones included, which rustix
/// does not know by name.
pub fn send(pidfd: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    // SAFETY: all arguments are plain values; without a siginfo the kernel fills in kill's.
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What a terminal or a supervisor sends to a command in the foreground.
const FOREGROUND: [libc::c_int; 8] = [
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGCONT,
];

/// The foreground signals, blocked until this is dropped.
#[derive(Debug)]
pub struct Caught {
    queue: OwnedFd,
    before: libc::sigset_t,
}

impl Caught {
    /// Blocks the signals.
    pub fn all() -> io::Result<Self> {
        let mut wanted = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: both sets are written before they are read, the first by sigemptyset, the second
        // by sigprocmask, which cannot fail with these arguments.
        let (queue, before) = unsafe {
            libc::sigemptyset(wanted.as_mut_ptr());
            for signal in FOREGROUND {
                libc::sigaddset(wanted.as_mut_ptr(), signal);
            }
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            let queue = libc::signalfd(-1, wanted.as_ptr(), flags);
            if queue < 0 {
                return Err(io::Error::last_os_error());
            }
            libc::sigprocmask(libc::SIG_BLOCK, wanted.as_ptr(), before.as_mut_ptr());
            (OwnedFd::from_raw_fd(queue), before.assume_init())
        };
        Ok(Self { queue, before })
    }

    /// Waits for the next signal, or for the end of the process behind `pidfd`, which is `None`.
    pub fn wait(&self, pidfd: BorrowedFd<'_>) -> io::Result<Option<i32>> {
        loop {
            let mut fds = [
                PollFd::from_borrowed_fd(pidfd, PollFlags::IN),
                PollFd::new(&self.queue, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            if let Some(signal) = self.next() {
                return Ok(Some(signal));
            }
            if !fds[0].revents().is_empty() {
                return Ok(None);
            }
        }
    }

    /// The next signal that has arrived, if one has.
    pub fn next(&self) -> Option<i32> {
        // struct signalfd_siginfo begins with the signal's number and has 128 bytes.
        let mut info = [0; 128];
        match rustix::io::read(&self.queue, &mut info) {
            Ok(128) => Some(i32::from_ne_bytes([info[0], info[1], info[2], info[3]])),
            _ => None,
        }
    }
}

impl AsFd for Caught {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        // SAFETY: the set is the one that sigprocmask gave.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut()) };
    }
}
