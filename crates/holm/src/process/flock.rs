//! Waiting for a lock (flock(2)) that another command has.

use std::fmt::{Display, Write as _};
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use holm_sys::interrupt::Interrupts;
use rustix::fs::{FlockOperation, flock, fstat};
use rustix::io::Errno;

use crate::step;

/// After this time a command says what it waits for.
const SILENT: Duration = Duration::from_secs(1);

/// After this time it gives up: longer than any start or end of a guest may take.
const LONGEST: Duration = Duration::from_mins(5);

/// How often it looks at the clock.
const TICK: Duration = Duration::from_millis(100);

/// What a command is told that waits for a lock.
#[derive(Clone, Copy)]
pub(crate) struct Waiting<'a> {
    /// What is locked, as in "guest box".
    pub what: &'a dyn Display,
    /// Called once with a sentence.
    pub say: Option<fn(&str)>,
}

/// Takes a lock; `how` is one of those that wait. Waits for at most five minutes, and then says who
/// has it.
pub(crate) fn lock(file: impl AsFd, how: FlockOperation, waiting: Waiting<'_>) -> io::Result<()> {
    let at_once = match how {
        FlockOperation::LockShared => FlockOperation::NonBlockingLockShared,
        _ => FlockOperation::NonBlockingLockExclusive,
    };
    match flock(&file, at_once) {
        Err(Errno::WOULDBLOCK) => {}
        done => return Ok(done?),
    }
    let what = format!("the lock of {}", waiting.what);
    let _at = step::at(&what);
    wait(file, how, waiting)
}

fn wait(file: impl AsFd, how: FlockOperation, waiting: Waiting<'_>) -> io::Result<()> {
    let Waiting { what, mut say } = waiting;
    let begin = Instant::now();
    let longest = step::limit("HOLM_LOCK_MS", LONGEST);
    let _interrupts = Interrupts::every(TICK)?;
    loop {
        match flock(&file, how) {
            Err(Errno::INTR) => {}
            done => return Ok(done?),
        }
        if begin.elapsed() >= longest {
            let seconds = longest.as_secs();
            let who = holder(&file);
            let error =
                format!("{who} has had it locked for {seconds} s; try again when that has ended");
            return Err(io::Error::new(io::ErrorKind::TimedOut, error));
        }
        if begin.elapsed() >= SILENT
            && let Some(say) = say.take()
        {
            say(&format!("waiting for {what}, which {} has locked", holder(&file)));
        }
    }
}

/// Who has a file locked, according to the kernel. A child of it may have inherited the lock.
fn holder(file: impl AsFd) -> String {
    let inode = fstat(&file).map_or(0, |stat| stat.st_ino);
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let Some(pid) = pid_of_holder(&locks, inode) else { return "another command".to_owned() };
    let mut holder = format!("process {pid}");
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = command.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let command = words.join(" ");
    if !command.trim().is_empty() {
        let _ = write!(holder, " (`{}`)", command.trim());
    }
    holder
}

/// The process that took a lock on the file with this inode. The device is not compared: btrfs
/// shows programs another one than is in this table.
fn pid_of_holder(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        // 1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF; those that wait have an arrow, `->`.
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, pid, file, ..] = words[..] else { return None };
        (file.rsplit(':').next()?.parse() == Ok(inode)).then(|| pid.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_told_from_those_that_wait() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 08:01:77 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 22 08:01:77 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 33 08:01:77 0 EOF\n\
                     3: FLOCK  ADVISORY  READ 44 00:1f:78 0 EOF\n";
        assert_eq!(pid_of_holder(locks, 77), Some(33));
        assert_eq!(pid_of_holder(locks, 78), Some(44));
        assert_eq!(pid_of_holder(locks, 79), None);
        assert_eq!(pid_of_holder("1: FLOCK ADVISORY WRITE -1 08:01:77 0 EOF", 77), None);
    }
}
