//! The end of a guest's init: how it went, and who takes over.

use super::handoff::Handoff;
use super::watch::{bounded, pause};
use core::ffi::CStr;
use holm_proto::ended::{NOTE_MAX, Note, TEXT_MAX, VERB};
use holm_proto::path::ENDED;
use holm_proto::{Ended, How};
use holm_sys::bare::{self, Status};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, renameat, unlinkat};
use rustix::io::{Errno, write};
use rustix::process::{WaitId, WaitIdOptions, waitid};

/// How often an adopter asks for the status of an init that somebody else has yet to reap, and each pause in milliseconds.
const TRIES: u32 = 100;
const PAUSE: i64 = 20;

/// Where the note of the end is written before it has its name.
const NEW: &CStr = c"ended.new";

/// How the init of `pidfd` ended; `None` while it runs.
pub fn wait(pidfd: &OwnedFd) -> Option<Ended> {
    match waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
        Ok(status) => {
            let status = status?;
            let exited = status.exit_status().map(Status::Exited);
            let status = exited.or(status.terminating_signal().map(Status::Killed));
            Some(Ended { how: how(status), adopted: false })
        }
        Err(Errno::CHILD) => Some(Ended { how: how(ask(pidfd)), adopted: true }),
        Err(_) => None,
    }
}

fn how(status: Option<Status>) -> How {
    match status {
        Some(Status::Exited(status)) => How::Exited(low_byte(status)),
        Some(Status::Killed(signal)) => How::Killed(low_byte(signal)),
        None => How::Unknown,
    }
}

fn low_byte(number: i32) -> u8 {
    number.to_le_bytes()[0]
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

/// Lets `holm monitor-ended` go on with this pid; where that is impossible, notes the end and is done.
pub fn hand_over(mut handoff: Handoff, ended: Ended) -> i32 {
    note(&handoff, ended);
    // As in `notify`: at the exec no timer would end it.
    bounded(|| drop(handoff.notify.take()));
    // The program that takes over starts guests again, and they would inherit it.
    protect_from_oom(false);
    let mut args = [c""; 9];
    args[..5].copy_from_slice(&[c"holm", VERB, c"--root", handoff.root, handoff.name]);
    let mut used = 5;
    let mut words = [0; TEXT_MAX + 1];
    let len = ended.write(&mut words);
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

/// Notes the end in the guest's folder, for a `holm` that comes by later.
fn note(handoff: &Handoff, ended: Ended) {
    let folder = &handoff.folder;
    let Ok(run) = fstat(&handoff.init) else { return };
    let mut line = [0; NOTE_MAX];
    let len = Note { run: run.st_ino, ended }.write(&mut line);
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(file) = openat(folder, NEW, flags, Mode::RUSR | Mode::WUSR) else { return };
    if write(&file, &line[..len]).is_ok_and(|written| written == len) {
        let _ = renameat(folder, NEW, folder, ENDED);
    } else {
        let _ = unlinkat(folder, NEW, AtFlags::empty());
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
