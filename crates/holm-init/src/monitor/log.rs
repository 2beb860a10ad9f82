//! The guest's log: `log`, and `log.1` before it.

use holm_proto::path::{LOG, OLD_LOG};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, fstat, openat, renameat};
use rustix::io::write;

/// Where `log` becomes `log.1`, in bytes.
const LIMIT: u64 = 1 << 20;

/// The open log. A full disk loses lines and stops nobody.
pub struct Log {
    file: Option<OwnedFd>,
    size: u64,
}

impl Log {
    /// Goes on where the guest's log ends.
    pub fn open(folder: &OwnedFd) -> Log {
        let flags =
            OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(folder, LOG, flags, Mode::RUSR | Mode::WUSR).ok();
        let stat = file.as_ref().and_then(|file| fstat(file).ok());
        let size = stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        Log { file, size }
    }

    /// Adds `bytes`, after a turn of the log when they would make it too long.
    pub fn append(&mut self, folder: &OwnedFd, bytes: &[u8]) {
        let full = self.size + bytes.len() as u64 > LIMIT && self.size > 0;
        if full {
            let _ = renameat(folder, LOG, folder, OLD_LOG);
        }
        // One that could not be opened before may be now: a full disk does not stay full.
        if full || self.file.is_none() {
            *self = Log::open(folder);
        }
        let Some(file) = &self.file else { return };
        if let Ok(written) = write(file, bytes) {
            self.size += written as u64;
        }
    }
}
