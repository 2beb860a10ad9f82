//! Who takes over when a guest's init has ended.

use super::handoff::Handoff;
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

/// Lets `holm monitor-ended` go on with this pid; where that is impossible, notes the end and is done.
pub fn hand_over(mut handoff: Handoff, ended: Ended) -> i32 {
    note(&handoff, ended);
    // As in `notify`: at the exec no timer would end it.
    bounded(|| drop(handoff.notify.take()));
    // The program that takes over starts guests again, and they would inherit it.
    oom::protect(false);
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
