//! Files and directories of a cgroup filesystem, always relative to a descriptor.

use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags, fgetxattr, mkdirat, openat};
use rustix::io::{Errno, Result, read, write};
use rustix::path::Arg;

/// The mode of directories that the host makes. A guest's tools may read them.
pub const DIR_MODE: Mode = Mode::from_raw_mode(0o755);

pub fn open_dir(at: impl AsFd, path: impl Arg) -> Result<OwnedFd> {
    openat(
        at,
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

/// Opens a directory, making it if it does not exist.
pub fn make_and_open(at: impl AsFd, name: &str) -> Result<OwnedFd> {
    match open_dir(&at, name) {
        Err(Errno::NOENT) => {
            make(&at, name)?;
            open_dir(&at, name)
        }
        result => result,
    }
}

/// Makes a directory if it does not exist.
pub fn make(at: impl AsFd, name: &str) -> Result<()> {
    match mkdirat(at, name, DIR_MODE) {
        Err(Errno::EXIST) | Ok(()) => Ok(()),
        Err(e) => Err(e),
    }
}

/// Reads a whole file. ENODEV (the cgroup has been removed since the file was opened) becomes
/// ENOENT.
pub fn read_file(at: impl AsFd, name: &str) -> Result<String> {
    let file = openat(at, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = Vec::with_capacity(4096);
    loop {
        match read(&file, spare_capacity(&mut bytes)) {
            Ok(0) => break,
            // Without room the next read would seem to be at the end.
            Ok(_) if bytes.len() == bytes.capacity() => bytes.reserve(4096),
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::NODEV) => return Err(Errno::NOENT),
            Err(e) => return Err(e),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes a value in a single write, as cgroup files require.
pub fn write_file(at: impl AsFd, name: &str, value: &str) -> Result<()> {
    let file = openat(at, name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    loop {
        match write(&file, value.as_bytes()) {
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
            Ok(_) => return Ok(()),
        }
    }
}

/// An extended attribute, if there is one.
pub fn xattr(file: impl AsFd, name: impl Arg + Copy) -> Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(4096);
    loop {
        match fgetxattr(&file, name, spare_capacity(&mut bytes)) {
            Ok(_) => return Ok(Some(bytes)),
            // The latter two: the cgroup has been removed since it was opened.
            Err(Errno::NODATA | Errno::NODEV | Errno::NOENT) => return Ok(None),
            Err(Errno::RANGE) if bytes.capacity() < 1 << 16 => bytes.reserve(bytes.capacity() * 2),
            Err(e) => return Err(e),
        }
    }
}
