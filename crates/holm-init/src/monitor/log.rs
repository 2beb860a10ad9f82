//! A log: `log`, and `log.1` before it.

use holm_proto::path::{LOG, OLD_LOG};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, fstat, ftruncate, openat, renameat};
use rustix::io::write;

/// The open log. On a full disk lines or records are lost, and nothing else happens.
pub struct Log {
    file: Option<OwnedFd>,
    size: u64,
    limit: u64,
    record: u64,
}

impl Log {
    /// Opens the log, to append records of so many bytes to it; 1 for text. At `limit`, in bytes,
    /// `log` becomes `log.1`.
    pub fn open(directory: &OwnedFd, limit: u64, record: u64) -> Log {
        let flags =
            OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(directory, LOG, flags, Mode::RUSR | Mode::WUSR).ok();
        let stat = file.as_ref().and_then(|file| fstat(file).ok());
        let size = stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        let mut log = Log { file, size, limit, record };
        log.keep_whole_records();
        log
    }

    /// Appends `bytes`, and rotates the log before that if they would make it too long.
    pub fn append(&mut self, directory: &OwnedFd, bytes: &[u8]) {
        let full = self.size + bytes.len() as u64 > self.limit && self.size > 0;
        if full {
            let _ = renameat(directory, LOG, directory, OLD_LOG);
        }
        // If it could not be opened before, it may be now: a full disk does not stay full.
        if full || self.file.is_none() {
            *self = Log::open(directory, self.limit, self.record);
        }
        let Some(file) = &self.file else { return };
        if let Ok(written) = write(file, bytes) {
            self.size += written as u64;
            self.keep_whole_records();
        }
    }

    /// Takes back a part of a record, behind which none could be read.
    fn keep_whole_records(&mut self) {
        let part = self.size % self.record;
        if let Some(file) = &self.file
            && part > 0
            && ftruncate(file, self.size - part).is_ok()
        {
            self.size -= part;
        }
    }
}
