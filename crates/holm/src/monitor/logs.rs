//! Reading a guest's log, also while its monitor writes and rotates it.

use holm_proto::path::{LOG, OLD_LOG};
use rustix::fs::fstat;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A request for a guest's log.
#[expect(missing_debug_implementations, reason = "a function has no Debug")]
pub struct Logs<'a> {
    /// The guest's directory, which holds `log` and `log.1`.
    pub directory: &'a Path,
    /// Only this many lines, the last ones.
    pub lines: Option<usize>,
    /// `None`: writes what is there and returns. Otherwise follows the log until this returns
    /// false, the guest's directory is removed, or the output is closed. It is called whenever
    /// another file in the guest's directory has changed.
    pub follow_while: Option<&'a dyn Fn() -> bool>,
}

impl Logs<'_> {
    /// Writes the log.
    pub fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        // Set up before the first read, or what is written in between would be noticed late.
        let watch = self.follow_while.map(|_| self.watch()).transpose()?;
        let goes_on = self.goes_on();
        let mut log = self.open(LOG)?;
        let mut text = Vec::new();
        if let Some(mut old) = self.open(OLD_LOG)? {
            old.read_to_end(&mut text)?;
        }
        if let Some(log) = &mut log {
            log.read_to_end(&mut text)?;
        }
        output.write_all(tail(&text, self.lines))?;
        match watch {
            Some(watch) if goes_on => self.follow(&watch, log, output),
            _ => Ok(()),
        }
    }

    /// Asked before the log is read, so that nothing that was written until then is missed.
    fn goes_on(&self) -> bool {
        self.follow_while.is_some_and(|goes_on| goes_on())
    }

    fn open(&self, name: &CStr) -> io::Result<Option<File>> {
        match File::open(self.directory.join(OsStr::from_bytes(name.to_bytes()))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            file => file.map(Some),
        }
    }

    fn watch(&self) -> io::Result<OwnedFd> {
        let watch = inotify::init(CreateFlags::CLOEXEC)?;
        let what = WatchFlags::MODIFY
            | WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE
            | WatchFlags::ONLYDIR;
        inotify::add_watch(&watch, self.directory, what)?;
        Ok(watch)
    }

    fn follow(
        &self,
        watch: &OwnedFd,
        mut log: Option<File>,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        loop {
            let goes_on = match changed(watch)? {
                Change::Gone => return Ok(()),
                Change::Log => true,
                Change::Other => self.goes_on(),
            };
            let current = self.open(LOG)?;
            // After the current file is opened: what was written to the old one before the rotation
            // comes first, and all of it.
            rest(log.as_mut(), output)?;
            match current {
                // While the file is open, inotify does not report that its directory was removed.
                None => log = None,
                Some(current) if log.as_ref().is_some_and(|log| same(log, &current)) => {}
                Some(mut current) => {
                    rest(Some(&mut current), output)?;
                    log = Some(current);
                }
            }
            if !goes_on {
                return Ok(());
            }
        }
    }
}

/// What was written to a log since it was last read.
fn rest(log: Option<&mut File>, output: &mut dyn Write) -> io::Result<()> {
    let Some(log) = log else { return Ok(()) };
    let mut text = Vec::new();
    log.read_to_end(&mut text)?;
    output.write_all(&text)
}

/// What has happened in the guest's directory.
#[derive(Clone, Copy)]
enum Change {
    Log,
    Other,
    Gone,
}

/// Waits for something to happen.
fn changed(watch: &OwnedFd) -> io::Result<Change> {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(watch, &mut buffer);
    let mut change = Change::Log;
    loop {
        match events.next() {
            Ok(event) if event.events().contains(ReadFlags::IGNORED) => return Ok(Change::Gone),
            Ok(event) if event.file_name().is_none_or(|name| name != LOG && name != OLD_LOG) => {
                change = Change::Other;
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if events.is_buffer_empty() {
            return Ok(change);
        }
    }
}

fn same(a: &File, b: &File) -> bool {
    match (fstat(a), fstat(b)) {
        (Ok(a), Ok(b)) => (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino),
        _ => false,
    }
}

/// The last `lines` lines of `text`; an unfinished one counts.
pub(super) fn tail(text: &[u8], lines: Option<usize>) -> &[u8] {
    let Some(lines) = lines else { return text };
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let mut starts = (0..body.len()).rev().filter(|&at| body[at] == b'\n').map(|at| at + 1);
    match lines.checked_sub(1) {
        None => &[],
        Some(skip) => starts.nth(skip).map_or(text, |start| &text[start..]),
    }
}
