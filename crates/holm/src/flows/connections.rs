//! The connections that monitors have recorded.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use holm_proto::Flow;
use holm_proto::flow::RECORD;
use holm_proto::path::{LOG, OLD_LOG};
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::base;
use super::error::Error;
use crate::Failed;
use crate::failed::{make_directories, unless_gone};
use crate::pool::{Name, Pool};

/// The directories of all guests that have recorded connections, and their names.
pub fn guests(pool: &Pool) -> Result<Vec<(Name, PathBuf)>, Error> {
    let all = base(pool).join("connections");
    let failed = |error| Failed::new("list", &all, error);
    let Some(entries) = unless_gone(std::fs::read_dir(&all)).map_err(failed)? else {
        return Ok(Vec::new());
    };
    let mut guests = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_str().and_then(|name| Name::new(name).ok());
        guests.extend(name.map(|name| (name, entry.path())));
    }
    Ok(guests)
}

/// The directory for a guest's connections, which is made if it is missing.
pub fn directory(pool: &Pool, guest: &Name) -> Result<OwnedFd, Error> {
    let path = base(pool).join("connections").join(guest.as_str());
    make_directories(&path, 0o700)
        .map_err(|error| Failed::new("make the directory", &path, error))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(CWD, &path, flags, Mode::empty());
    Ok(opened.map_err(|errno| Failed::new("open", &path, errno))?)
}

/// The connections that a guest has opened, oldest first.
pub fn read(directory: &Path) -> Result<Vec<Flow>, Error> {
    let mut flows = Vec::new();
    for name in [OLD_LOG, LOG] {
        let path = directory.join(name.to_str().unwrap_or_default());
        let bytes = unless_gone(std::fs::read(&path));
        let bytes = bytes.map_err(|error| Failed::new("read", &path, error))?.unwrap_or_default();
        flows.extend(bytes.as_chunks::<RECORD>().0.iter().filter_map(Flow::from_bytes));
    }
    Ok(flows)
}
