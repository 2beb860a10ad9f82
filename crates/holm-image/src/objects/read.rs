//! Reading the bodies of files of the host into the store.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering;

use composefs::fsverity::{FsVerityHashValue, Sha256HashValue};
use composefs::tree::RegularFile;
use rustix::fs::{SeekFrom, ioctl_ficlone, seek};
use rustix::io::Errno;

use super::body::Body;
use super::digest::digest;
use super::store::{Found, Objects, Temporary};
use crate::error::{Error, Result};
use crate::parallel::{Buffers, PIECE};

/// The shortest file that shares its extents with its source. A clone is made before its digest is
/// known, and read from the disk again, which takes longer than a copy of so few bytes: three of
/// four files of a Debian are smaller, and have a twenty-fifth of its bytes.
const CLONED_MIN: u64 = 16 << 10;

/// Stores a file's data and holes. Calls `progress` with the bytes of each piece.
pub(crate) fn copy_body(
    file: &File,
    path: &Path,
    objects: &Objects,
    buffers: &mut Buffers,
    progress: &dyn Fn(u64),
) -> Result<RegularFile<Sha256HashValue>> {
    if let Some((clone, size)) = clone(file, path, objects)? {
        return store_clone(clone, size, objects, buffers, progress);
    }
    let Buffers { read, write } = buffers;
    let mut body = Body::new(objects, write);
    let mut at = 0;
    loop {
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data,
            // The rest is a hole.
            Err(Errno::NXIO) => {
                let end = file.metadata().map_err(Error::io("stat", path))?.len();
                body.hole(end.saturating_sub(at))?;
                return body.end(read);
            }
            Err(e) => return Err(Error::io("read", path)(e)),
        };
        body.hole(data - at)?;
        let hole = seek(file, SeekFrom::Hole(data)).map_err(Error::io("read", path))?;
        at = data;
        while at < hole {
            let want = usize::try_from(hole - at).unwrap_or(PIECE).min(PIECE);
            let n = file.read_at(&mut read[..want], at).map_err(Error::io("read", path))?;
            if n == 0 {
                return body.end(read); // it has been truncated
            }
            body.data(&read[..n])?;
            at += n as u64;
            progress(n as u64);
        }
    }
}

/// A file that shares its extents with `file`, and its length, where the filesystem can do that.
fn clone(file: &File, path: &Path, objects: &Objects) -> Result<Option<(Temporary, u64)>> {
    if !objects.clones.load(Ordering::Relaxed)
        || file.metadata().map_err(Error::io("stat", path))?.len() < CLONED_MIN
    {
        return Ok(None);
    }
    let clone = objects.temporary()?;
    match ioctl_ficlone(&clone.file, file) {
        Ok(()) => {
            // The source may be changing.
            let size = clone.file.metadata().map_err(Error::io("stat", &clone.path))?.len();
            Ok(if size < CLONED_MIN { None } else { Some((clone, size)) })
        }
        Err(Errno::OPNOTSUPP | Errno::XDEV | Errno::NOTTY | Errno::NOSYS) => {
            objects.clones.store(false, Ordering::Relaxed);
            Ok(None)
        }
        // Something about this file, such as its attributes on btrfs: it is copied.
        Err(_) => Ok(None),
    }
}

/// Makes an object of a clone, which no longer changes.
fn store_clone(
    clone: Temporary,
    size: u64,
    objects: &Objects,
    buffers: &mut Buffers,
    progress: &dyn Fn(u64),
) -> Result<RegularFile<Sha256HashValue>> {
    let found = digest(&clone.file, size, &mut buffers.read);
    let id = Sha256HashValue::from(found.map_err(Error::io("read", &clone.path))?);
    let name = id.to_object_pathname();
    progress(size);
    if !objects.has(&name) {
        let found = objects.look_up(&name, &id, size, &mut buffers.read)?;
        if found != Found::Body {
            clone.keep(objects, &name, size)?;
        }
        objects.add(name, size, found);
    }
    Ok(RegularFile::External(id, size))
}
