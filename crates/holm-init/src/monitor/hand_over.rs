//! The whole `holm` takes over when a guest's init has ended.

use super::guest::Guest;
use super::oom;
use super::timer::bounded;
use core::ffi::CStr;
use holm_proto::Ended;
use holm_proto::ended::{NOTE_MAX, Note, TEXT_MAX, VERB};
use holm_proto::path::ENDED;
use holm_sys::bare;
use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, renameat, unlinkat};
use rustix::io::write;

/// Where the note of the end is written before it has its name.
const NEW: &CStr = c"ended.new";

/// Notes the end and executes `holm monitor-ended`, which keeps this pid; returns the exit status
/// only if that fails.
pub fn hand_over(mut guest: Guest, ended: Ended) -> i32 {
    // Before the note: whoever reads that cleans up, and unmounts what nobody holds.
    drop(guest.image.take());
    note(&guest, ended);
    // Closed here, under a timer: closing a socket in which the guest has queued descriptors may
    // block, and in the exec nothing could interrupt it.
    bounded(|| drop(guest.notify.take()));
    // That program may start the guest again, which would inherit the setting.
    oom::protect(false);
    let mut args = [c""; 9];
    args[..5].copy_from_slice(&[c"holm", VERB, c"--root", guest.root, guest.name]);
    let mut used = 5;
    let mut status = [0; TEXT_MAX + 1];
    let len = ended.write(&mut status);
    // Each part becomes an argument of its own.
    for byte in &mut status[..len] {
        if *byte == b' ' {
            *byte = 0;
        }
    }
    let mut rest = &status[..];
    while rest.first().is_some_and(|&byte| byte != 0) {
        let Ok(argument) = CStr::from_bytes_until_nul(rest) else { break };
        args[used] = argument;
        used += 1;
        rest = &rest[argument.count_bytes() + 1..];
    }
    bare::exec(guest.holm, &args[..used]);
    125
}

/// Notes the end in the guest's directory, for a `holm` that looks before this process has recorded
/// it.
fn note(guest: &Guest, ended: Ended) {
    let directory = &guest.directory;
    let Ok(run) = fstat(&guest.init) else { return };
    let mut line = [0; NOTE_MAX];
    let len = Note { run: run.st_ino, ended }.write(&mut line);
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(file) = openat(directory, NEW, flags, Mode::RUSR | Mode::WUSR) else { return };
    if write(&file, &line[..len]).is_ok_and(|written| written == len) {
        let _ = renameat(directory, NEW, directory, ENDED);
    } else {
        let _ = unlinkat(directory, NEW, AtFlags::empty());
    }
}
