//! The guest's log: `log`, and `log.1` before it.

use holm_proto::path::{LOG, OLD_LOG};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, fstat, openat, renameat};
use rustix::io::write;

/// Where `log` becomes `log.1`, in bytes.
const LIMIT: u64 = 1 << 20;

/// The open log. On a full disk lines are lost, and nothing else happens.
pub struct Log {
    file: Option<OwnedFd>,
    size: u64,
}

impl Log {
    /// Opens the log, to append to it.
    pub fn open(directory: &OwnedFd) -> Log {
        let flags =
            OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(directory, LOG, flags, Mode::RUSR | Mode::WUSR).ok();
        let stat = file.as_ref().and_then(|file| fstat(file).ok());
        let size = stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        Log { file, size }
    }

    /// Appends `bytes`, and rotates the log before that if they would make it too long.
    pub fn append(&mut self, directory: &OwnedFd, bytes: &[u8]) {
        let full = self.size + bytes.len() as u64 > LIMIT && self.size > 0;
        if full {
            let _ = renameat(directory, LOG, directory, OLD_LOG);
        }
        // If it could not be opened before, it may be now: a full disk does not stay full.
        if full || self.file.is_none() {
            *self = Log::open(directory);
        }
        let Some(file) = &self.file else { return };
        if let Ok(written) = write(file, bytes) {
            self.size += written as u64;
        }
    }
}
