use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use holm_sys::project;
use rustix::io::Errno;

use super::limits::Limits;
use super::tag;
use crate::Failed;
use crate::disk::Error;

/// Whether the filesystem enforces limits of projects.
pub(super) fn is_enforced(directory: &Path) -> Result<bool, Failed> {
    match project::is_enforced(open(directory)?.as_fd()) {
        Ok(enforced) => Ok(enforced),
        // No quota at all; not on this filesystem; not in this kernel.
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(Failed::new("look at the quota of", directory, error)),
    }
}

fn is_absent(error: &io::Error) -> bool {
    let absent = [Errno::NOSYS, Errno::SRCH, Errno::OPNOTSUPP, Errno::INVAL, Errno::NOTTY];
    absent.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Refuses a project id under which the filesystem has files. For the first time that a directory
/// is to get it; the caller then records that it is that directory's.
pub fn claim(directory: &Path, id: u32) -> Result<(), Error> {
    let usage = project::usage(open(directory)?.as_fd(), id)
        .map_err(|error| Failed::new("look at the quota of", directory, error))?;
    if usage.inodes > 0 { Err(Error::ProjectTaken { id, files: usage.inodes }) } else { Ok(()) }
}

/// Bounds what `directories` take together, with all that is in them, by the limits of a project
/// id. Nobody else changes what is in them, unless all of it has the id already: then only the
/// limits change. After an error, or when the command is killed, the same call completes it.
pub fn apply(directories: &[&Path], id: u32, limits: Limits) -> Result<(), Failed> {
    for directory in directories {
        tag::tree(directory, id, directories[0])?;
    }
    set(directories[0], id, limits)
}

/// Whether the directory has the project id, and so all that is in it.
pub fn is_applied(directory: &Path, id: u32) -> Result<bool, Failed> {
    match project::get(open(directory)?.as_fd()) {
        Ok(found) => Ok(found == (id, true)),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(Failed::new("look at the project id of", directory, error)),
    }
}

/// What files with a project id take on the filesystem of `directory`, in bytes.
pub fn used(directory: &Path, id: u32) -> Result<u64, Failed> {
    let usage = project::usage(open(directory)?.as_fd(), id);
    let usage = usage.map_err(|error| Failed::new("look at the quota of", directory, error))?;
    Ok(usage.bytes)
}

/// Removes the limits of a project id on the filesystem of `directory`; its entry in the
/// filesystem's table goes with its last file.
pub fn lift(directory: &Path, id: u32) -> Result<(), Failed> {
    set(directory, id, Limits::default())
}

fn set(directory: &Path, id: u32, limits: Limits) -> Result<(), Failed> {
    let (size, inodes) = (limits.size.unwrap_or(0), limits.inodes.unwrap_or(0));
    match project::set_limits(open(directory)?.as_fd(), id, size, inodes) {
        Err(error) if !limits.any() && is_absent(&error) => Ok(()),
        done => done.map_err(|error| Failed::new("set the quota of", directory, error)),
    }
}

fn open(directory: &Path) -> Result<File, Failed> {
    File::open(directory).map_err(|error| Failed::new("open", directory, error))
}
