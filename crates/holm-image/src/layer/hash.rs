//! Digests of many files, computed on several CPUs.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags, Statx, openat2};
use rustix::io::Errno;

use super::upper::{METACOPY, is_regular};
use crate::error::{Error, Result};
use crate::metadata::stat;
use crate::objects::digest;
use crate::parallel;

/// A file of an upper directory.
#[derive(Debug)]
pub struct Candidate {
    /// Its path below the upper directory.
    pub path: Vec<u8>,
    /// What was seen of it.
    pub found: Statx,
}

impl Candidate {
    /// Opens the file; `None` if it is no longer what it was.
    pub fn open(&self, upper: &File) -> Result<Option<File>> {
        let path = Path::new(OsStr::from_bytes(&self.path));
        // The guest may run: none of its links is followed, and nothing is waited for.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOATIME | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let file = match openat2(upper, path, flags, Mode::empty(), resolve) {
            Ok(file) => File::from(file),
            Err(
                Errno::NOENT
                | Errno::NOTDIR
                | Errno::LOOP
                | Errno::WOULDBLOCK
                | Errno::NXIO
                | Errno::XDEV,
            ) => return Ok(None),
            Err(e) => return Err(Error::io("open the guest's", path)(e)),
        };
        // Of a metacopy there is nothing to read here.
        let is_whole = rustix::fs::fgetxattr(&file, METACOPY, &mut [0_u8; 0]) == Err(Errno::NODATA);
        Ok(if is_whole && self.is(&file)? { Some(file) } else { None })
    }

    /// Whether this is the file, unchanged.
    pub fn is(&self, file: &File) -> Result<bool> {
        let path = Path::new(OsStr::from_bytes(&self.path));
        let now = stat(file, c"").map_err(Error::io("look at the guest's", path))?;
        let same = |of: fn(&Statx) -> (u64, u64, i64, u32)| of(&now) == of(&self.found);
        Ok(is_regular(&now)
            && same(|s| (s.stx_ino, s.stx_size, s.stx_ctime.tv_sec, s.stx_ctime.tv_nsec)))
    }
}

/// The digest of each file; `None` for one that has changed. Calls `progress` with the bytes of
/// each file that is done.
pub fn digests(
    upper: &File,
    files: &[&Candidate],
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Option<[u8; 32]>>> {
    let found = parallel::map(files, |file, buffers| {
        let found = of_one(upper, file, &mut buffers.read);
        progress(file.found.stx_size);
        found
    });
    found.into_iter().collect()
}

fn of_one(upper: &File, candidate: &Candidate, buffer: &mut [u8]) -> Result<Option<[u8; 32]>> {
    let Some(file) = candidate.open(upper)? else { return Ok(None) };
    match digest(&file, candidate.found.stx_size, buffer) {
        Ok(found) => Ok(if candidate.is(&file)? { Some(found) } else { None }),
        // It has been truncated.
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => {
            let path = Path::new(OsStr::from_bytes(&candidate.path));
            Err(Error::io("read the guest's", path)(e))
        }
    }
}
