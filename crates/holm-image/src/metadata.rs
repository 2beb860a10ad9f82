//! The metadata of a file of the host, as an image has it.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use composefs::tree::Stat;
use rustix::fs::{AtFlags, Mode, OFlags, Statx, StatxFlags, lgetxattr, llistxattr, openat, statx};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::xattrs::{self, Xattrs};

/// Opens an entry of a directory for reading, if it is no symbolic link.
pub(crate) fn open(dir: &File, name: &CStr, flags: OFlags) -> rustix::io::Result<File> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty()).map(File::from)
}

/// Looks at an entry of a directory; at the directory itself if the name is empty.
pub(crate) fn stat(dir: impl AsFd, name: &CStr) -> rustix::io::Result<Statx> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    statx(dir, name, flags, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)
}

/// What an image stores of a file.
pub(crate) fn to_stat(found: &Statx, xattrs: Xattrs) -> Stat {
    Stat {
        st_mode: u32::from(found.stx_mode) & 0o7777,
        st_uid: found.stx_uid,
        st_gid: found.stx_gid,
        st_mtim_sec: found.stx_mtime.tv_sec,
        st_mtim_nsec: found.stx_mtime.tv_nsec,
        xattrs,
    }
}

/// The extended attributes of the file at `entry`: a path through /proc, so that those of symbolic
/// links can be read.
pub(crate) fn read_xattrs(path: &[u8], entry: impl AsRef<Path>) -> Result<Xattrs> {
    let mut all = Xattrs::new();
    for_each_xattr(path, entry.as_ref(), |name, value| xattrs::add(&mut all, path, name, value))?;
    Ok(all)
}

/// Calls `each` with the name and the value of each extended attribute.
pub(crate) fn for_each_xattr(
    path: &[u8],
    entry: &Path,
    mut each: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    let shown = Path::new(OsStr::from_bytes(path));
    // Most files have none, and a buffer for all that there may be takes longer than asking.
    let mut names = vec![0; 256];
    let mut found = llistxattr(entry, &mut names);
    if found == Err(Errno::RANGE) {
        names.resize(1 << 16, 0);
        found = llistxattr(entry, &mut names);
    }
    let listed = match found {
        Ok(listed) => listed,
        Err(Errno::OPNOTSUPP) => 0,
        Err(e) => return Err(Error::io("list the attributes of", shown)(e)),
    };
    let mut value = vec![0; if listed > 0 { 1 << 16 } else { 0 }];
    for name in names[..listed].split(|b| *b == 0).filter(|name| !name.is_empty()) {
        let length = match lgetxattr(entry, OsStr::from_bytes(name), &mut value) {
            Ok(length) => length,
            Err(Errno::NODATA) => continue,
            Err(e) => return Err(Error::io("read the attributes of", shown)(e)),
        };
        each(name, &value[..length])?;
    }
    Ok(())
}
