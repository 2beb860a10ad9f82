//! The end of a guest's init: how it went, and who takes over.

use super::handoff::Handoff;
use super::watch::{bounded, pause};
use core::ffi::CStr;
use holm_sys::bare::{self, Status};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, renameat, unlinkat};
use rustix::io::{Errno, write};
use rustix::process::{WaitId, WaitIdOptions, waitid};

/// How often an adopter asks for the status of an init that somebody else has yet to reap, and each pause in milliseconds.
const TRIES: u32 = 100;
const PAUSE: i64 = 20;

/// How init ended, as far as it can be known.
#[derive(Clone, Copy)]
pub struct Ended {
    status: Option<Status>,
    adopted: bool,
}

/// How the init of `pidfd` ended; `None` while it runs.
pub fn wait(pidfd: &OwnedFd) -> Option<Ended> {
    match waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
        Ok(status) => {
            let status = status?;
            let exited = status.exit_status().map(Status::Exited);
            let status = exited.or(status.terminating_signal().map(Status::Killed));
            Some(Ended { status, adopted: false })
        }
        Err(Errno::CHILD) => Some(Ended { status: ask(pidfd), adopted: true }),
        Err(_) => None,
    }
}

/// The kernel gives the status to others only after init's parent, now the host's pid 1, has reaped it.
fn ask(pidfd: &OwnedFd) -> Option<Status> {
    (0..TRIES).find_map(|_| {
        let status = bare::exit_status_of(pidfd.as_fd());
        if status.is_none() {
            pause(PAUSE);
        }
        status
    })
}

impl Ended {
    /// Writes `exited 3`, `killed 9` or `unknown`, with ` adopted` behind it when a parent would know more.
    pub fn write(self, buffer: &mut [u8]) -> usize {
        let mut text = Text { buffer, len: 0 };
        match self.status {
            Some(Status::Exited(code)) => text.put(b"exited ").number(code.unsigned_abs().into()),
            Some(Status::Killed(signal)) => {
                text.put(b"killed ").number(signal.unsigned_abs().into())
            }
            None => text.put(b"unknown"),
        };
        if self.adopted {
            text.put(b" adopted");
        }
        text.len
    }
}

/// What `core::fmt` does, without the page that it costs each monitor; what does not fit is left out.
struct Text<'a> {
    buffer: &'a mut [u8],
    len: usize,
}

impl Text<'_> {
    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        if let Some(room) = self.buffer.get_mut(self.len..self.len + bytes.len()) {
            room.copy_from_slice(bytes);
            self.len += bytes.len();
        }
        self
    }

    fn number(&mut self, mut number: u64) -> &mut Self {
        let mut digits = [0; 20];
        let mut first = digits.len();
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
            first -= 1;
            if number == 0 {
                break;
            }
        }
        self.put(&digits[first..])
    }
}

/// Lets `holm monitor-ended` go on with this pid; where that is impossible, notes the end and is done.
pub fn hand_over(mut handoff: Handoff, ended: Ended) -> i32 {
    let mut words = [0; 64];
    let len = ended.write(&mut words);
    record(&handoff, &words[..len]);
    // As in `notify`: at the exec no timer would end it.
    bounded(|| drop(handoff.notify.take()));
    // The program that takes over starts guests again, and they would inherit it.
    protect_from_oom(false);
    let mut args = [c""; 9];
    args[..5].copy_from_slice(&[c"holm", c"monitor-ended", c"--root", handoff.root, handoff.name]);
    let mut used = 5;
    // Each word becomes an argument of its own.
    for byte in &mut words[..len] {
        if *byte == b' ' {
            *byte = 0;
        }
    }
    let mut rest = &words[..];
    while rest.first().is_some_and(|&byte| byte != 0) {
        let Ok(word) = CStr::from_bytes_until_nul(rest) else { break };
        args[used] = word;
        used += 1;
        rest = &rest[word.count_bytes() + 1..];
    }
    bare::exec(handoff.holm, &args[..used]);
    125
}

/// Notes the end in the guest's folder, for a `holm` that comes by later: which run it was (the inode of init's pidfd,
/// for the guest may have been started again by now), and the words.
fn record(handoff: &Handoff, words: &[u8]) {
    let folder = &handoff.folder;
    let Ok(run) = fstat(&handoff.init) else { return };
    let mut line = [0; 96];
    let mut text = Text { buffer: &mut line, len: 0 };
    text.number(run.st_ino).put(b" ").put(words);
    let len = text.len;
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(file) = openat(folder, c"ended.new", flags, Mode::RUSR | Mode::WUSR) else { return };
    if write(&file, &line[..len]).is_ok_and(|written| written == len) {
        let _ = renameat(folder, c"ended.new", folder, c"ended");
    } else {
        let _ = unlinkat(folder, c"ended.new", AtFlags::empty());
    }
}

/// The kernel's memory killer should take anybody before the one who cleans up after it.
pub fn protect_from_oom(yes: bool) {
    let path = c"/proc/self/oom_score_adj";
    if let Ok(file) = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
        // Where the kernel does not permit it, things stay as they are.
        let _ = write(&file, if yes { b"-900" } else { b"0" });
    }
}
