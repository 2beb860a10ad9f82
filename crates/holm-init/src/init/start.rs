//! Starting a program.

use super::report::report;
use core::sync::atomic::{AtomicBool, Ordering};
use holm_sys::bare::{self, Args, stdin};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{ioctl_tiocsctty, setsid};
use rustix::stdio::dup2_stdin;

/// A process that was started.
#[derive(Clone, Copy)]
pub struct Started {
    pub pid: i32,
    /// Its program cannot be executed: it ends at once.
    pub in_vain: bool,
}

/// Starts `args` in a new session. With `terminal`, standard input becomes its controlling
/// terminal; otherwise standard input is /dev/null.
pub fn start(args: Args, terminal: bool) -> Option<Started> {
    // The child shares this memory until it has executed its program.
    let in_vain = AtomicBool::new(false);
    let failed = &in_vain;
    let child = bare::spawn(move || {
        bare::unblock_all_signals();
        let _ = setsid();
        if terminal {
            // Fails if standard input is no terminal; then there is none to control.
            let _ = ioctl_tiocsctty(stdin());
        } else if let Ok(null) = open(c"/dev/null", OFlags::RDWR, Mode::empty()) {
            let _ = dup2_stdin(&null);
        }
        let error = bare::exec_argv(args);
        failed.store(true, Ordering::Relaxed);
        let name = args.get(0).unwrap_or(c"").to_bytes();
        let (why, status): (&[u8], i32) = match error {
            Errno::NOENT => (b"not found", 127),
            Errno::ACCESS => (b"not permitted to execute it", 126),
            Errno::NOEXEC => (b"not a program for this machine", 126),
            _ => (b"cannot be executed", 126),
        };
        report(&[name, b": ", why]);
        status
    });
    if child.is_err() {
        report(&[b"cannot start a process: the guest's limit is reached or memory is short"]);
    }
    child.ok().map(|pid| Started { pid, in_vain: in_vain.load(Ordering::Relaxed) })
}
