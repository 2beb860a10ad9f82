//! Walking a tree of cgroups that may have been made by a hostile guest: by descriptors, because
//! paths may be too long, and without recursion. `cgroup.max.depth` bounds the number of open
//! descriptors.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FileType, RawDir, rmdir, unlinkat};
use rustix::io::{Errno, Result as SysResult};

use super::files::{open_dir, read_file};
use super::{Error, Result};

/// The names of a cgroup's children, which may be any bytes.
pub(super) fn children(dir: &OwnedFd) -> SysResult<Vec<CString>> {
    entries(dir, FileType::Directory)
}

/// The names of a cgroup's files, which the kernel gives them.
pub(super) fn files(dir: &OwnedFd) -> SysResult<Vec<String>> {
    let files = entries(dir, FileType::RegularFile)?;
    Ok(files.into_iter().filter_map(|name| name.into_string().ok()).collect())
}

fn entries(dir: &OwnedFd, kind: FileType) -> SysResult<Vec<CString>> {
    let again = open_dir(dir, ".")?;
    let mut buffer = Vec::with_capacity(8192);
    let mut entries = RawDir::new(&again, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type() == kind && name != c"." && name != c".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// One level of a walk.
struct Level {
    dir: OwnedFd,
    name: CString,
    children: Vec<CString>,
}

/// Calls `each` with the parent, the name and the directory of every cgroup below `top`, children
/// before parents. Skips cgroups that disappear meanwhile.
fn bottom_up(
    top: &OwnedFd,
    mut each: impl FnMut(&OwnedFd, &CStr, &OwnedFd) -> SysResult<()>,
) -> SysResult<()> {
    let mut levels = vec![Level {
        dir: open_dir(top, ".")?,
        name: CString::default(),
        children: children(top)?,
    }];
    while let Some(level) = levels.last_mut() {
        if let Some(name) = level.children.pop() {
            match open_dir(&level.dir, name.as_c_str()).and_then(|dir| Ok((children(&dir)?, dir))) {
                Ok((children, dir)) => levels.push(Level { dir, name, children }),
                Err(Errno::NOENT | Errno::NODEV) => {}
                Err(e) => return Err(e),
            }
            continue;
        }
        let Some(Level { dir, name, .. }) = levels.pop() else { break };
        if let Some(parent) = levels.last() {
            each(&parent.dir, &name, &dir)?;
        }
    }
    Ok(())
}

/// Removes every cgroup below `top`.
pub(super) fn remove_below(top: &OwnedFd) -> SysResult<()> {
    bottom_up(top, |parent, name, _| match unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(e) => Err(e),
    })
}

/// The process ids in `top` and below. One that is moved meanwhile may be missed.
pub(super) fn pids(top: &OwnedFd) -> SysResult<Vec<i32>> {
    let mut pids = Vec::new();
    let mut add = |dir: &OwnedFd| match read_file(dir, "cgroup.procs") {
        Ok(text) => {
            pids.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
            Ok(())
        }
        // The processes of a threaded cgroup are listed in its domain cgroup.
        Err(Errno::NOENT | Errno::OPNOTSUPP) => Ok(()),
        Err(e) => Err(e),
    };
    bottom_up(top, |_, _, dir| add(dir))?;
    add(top)?;
    pids.sort_unstable();
    pids.dedup();
    Ok(pids)
}

/// Removes an empty cgroup from a v1 hierarchy, where guests cannot make any below it. Tasks leave
/// a v1 cgroup a moment after their parent has reaped them, and v1 has no event for that: hence the
/// short pauses.
pub(super) fn remove_empty(root: &Path, path: &str) -> Result<()> {
    const PAUSE: Duration = Duration::from_millis(1);
    let full = root.join(path);
    let mut tries = 1000;
    loop {
        match rmdir(&full) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::BUSY) if tries > 0 => {
                tries -= 1;
                std::thread::sleep(PAUSE);
            }
            Err(Errno::BUSY) => {
                let pids = open_dir(CWD, &full).and_then(|dir| pids(&dir)).unwrap_or_default();
                return Err(Error::Populated { path: full.display().to_string(), pids });
            }
            Err(e) => return Err(Error::io("remove cgroup", full.display().to_string(), e)),
        }
    }
}
