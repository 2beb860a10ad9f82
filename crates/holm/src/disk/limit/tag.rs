//! Giving a whole tree a project id.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use holm_sys::project;
use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, chownat, mknodat,
    openat, readlinkat, renameat, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use crate::Failed;

/// The name under which a file is made anew.
const NEW: &str = "holm-project";

/// Gives everything in `directory`, and at last the directory itself, the project id `id`: so it
/// tells whether all is done. What the tree contains is a guest's, but nobody changes it now. Only
/// two directories are open at a time, however deep it is.
///
/// What is no file and no directory can be given no id, and is made anew in `scratch`, which gets
/// the id first. If that is overlayfs's work directory, it may be `directory` too: a killed command
/// leaves only what the next mount removes.
pub fn tree(directory: &Path, id: u32, scratch: &Path) -> Result<(), Failed> {
    let fail = |error: io::Error| Failed::new("set the project id of what is in", directory, error);
    let top = File::open(directory).map_err(fail)?;
    if project::get(top.as_fd()).map_err(fail)? == (id, true) {
        return Ok(());
    }
    let scratch = File::open(scratch).map_err(fail)?;
    // What is made there gets the id, without which it could not be renamed to where it belongs.
    project::set(scratch.as_fd(), id, true).map_err(fail)?;
    below(&top, id, &scratch).map_err(fail)?;
    project::set(top.as_fd(), id, true).map_err(fail)
}

fn below(top: &File, id: u32, scratch: &File) -> io::Result<()> {
    let mut here: OwnedFd = top.try_clone()?.into();
    let mut levels = vec![names(&here)?];
    while let Some(names_left) = levels.last_mut() {
        let Some(name) = names_left.pop() else {
            levels.pop();
            if !levels.is_empty() {
                here = openat(&here, "..", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
            }
            continue;
        };
        let found = statat(&here, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => {
                here = openat(&here, &name, flags | OFlags::DIRECTORY, Mode::empty())?;
                project::set(here.as_fd(), id, true)?;
                levels.push(names(&here)?);
            }
            FileType::RegularFile => {
                let file = openat(&here, &name, flags, Mode::empty())?;
                project::set(file.as_fd(), id, false)?;
            }
            kind => make_anew(&here, &name, kind, &found, scratch)?,
        }
    }
    Ok(())
}

fn names(directory: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_owned();
        if ![c".", c".."].contains(&name.as_c_str()) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Replaces a link, a node, a fifo or a socket by one that was made where all gets the id: one
/// without it could not be renamed, and a whiteout could not be replaced.
fn make_anew(
    here: &OwnedFd,
    name: &CString,
    kind: FileType,
    found: &Stat,
    scratch: &File,
) -> io::Result<()> {
    let is_whiteout = kind == FileType::CharacterDevice && found.st_rdev == 0;
    // The names of a hard link would become several files. Those of a whiteout mean nothing.
    if found.st_nlink > 1 && !is_whiteout {
        return Ok(());
    }
    match unlinkat(scratch, NEW, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    if kind == FileType::Symlink {
        symlinkat(readlinkat(here, name, Vec::new())?, scratch, NEW)?;
    } else {
        mknodat(scratch, NEW, kind, Mode::from_raw_mode(found.st_mode), found.st_rdev)?;
    }
    let (uid, gid) = (Uid::from_raw(found.st_uid), Gid::from_raw(found.st_gid));
    chownat(scratch, NEW, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    let time = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps {
        last_access: time(found.st_atime, found.st_atime_nsec.cast_signed()),
        last_modification: time(found.st_mtime, found.st_mtime_nsec.cast_signed()),
    };
    utimensat(scratch, NEW, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(renameat(scratch, NEW, here, name)?)
}
