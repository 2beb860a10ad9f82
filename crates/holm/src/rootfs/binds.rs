use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use holm_sys::mount;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, OpenTreeFlags, open_tree};

use super::fsmount::set_flags;
use super::{Error, Point, Result};
use crate::config::BindMount;
use crate::step;

/// A detached, idmapped mount of a host directory or file: root's files are guest root's. The
/// flags of the host's mount (ro, noexec) stay.
pub fn make(
    bind: &BindMount,
    flags: MountAttrFlags,
    user_namespace: BorrowedFd<'_>,
) -> Result<(OwnedFd, Point)> {
    let refuse = |reason: String| Error::Source { path: bind.source.clone(), reason };
    let (source, point) = find(bind)?;
    let clone = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    let bound = open_tree(&source, "", clone).map_err(|errno| refuse(errno.to_string()))?;
    let mut flags = flags;
    flags.set(MountAttrFlags::MOUNT_ATTR_RDONLY, bind.read_only);
    mount::set_attributes(bound.as_fd(), flags.bits().into(), 0)
        .map_err(|error| refuse(error.to_string()))?;
    mount::make_idmapped(bound.as_fd(), user_namespace).map_err(|error| {
        refuse(format!(
            "its filesystem cannot map owners ({error}); use a directory on ext4, XFS, btrfs or tmpfs"
        ))
    })?;
    Ok((bound, point))
}

/// The source of a bind mount, and what kind of mount point it needs.
pub fn find(bind: &BindMount) -> Result<(OwnedFd, Point)> {
    let refuse = |reason: String| Error::Source { path: bind.source.clone(), reason };
    let shown = bind.source.to_string_lossy();
    // A dead network filesystem never answers.
    let _at = step::at(&shown);
    let source = open_source(&bind.source).map_err(|errno| refuse(explain(errno)))?;
    let stat = rustix::fs::fstat(&source).map_err(|errno| refuse(errno.to_string()))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Ok((source, Point::Directory)),
        FileType::RegularFile | FileType::Socket => Ok((source, Point::File)),
        _ => Err(refuse("only directories, files and sockets can be bound".to_owned())),
    }
}

/// A mount of something of the host's that all guests have, owned as on the host.
pub fn copy_of(path: &Path, flags: MountAttrFlags) -> Result<OwnedFd> {
    let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let copy =
        open_tree(CWD, path, clone).map_err(|errno| Error::io("open the host's", path, errno))?;
    set_flags(&copy, flags).map_err(|error| Error::io("set the flags of", path, error))?;
    Ok(copy)
}

/// Opens the source. A symbolic link anywhere in the path is refused: a user who can change it
/// could choose what the guest sees.
fn open_source(path: &Path) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
}

fn explain(errno: Errno) -> String {
    match errno {
        Errno::NOENT => "it does not exist on the host; make it, or change `mounts`".to_owned(),
        Errno::LOOP => {
            "it is, or is reached through, a symbolic link; name the real path (`realpath` shows it)"
                .to_owned()
        }
        other => other.to_string(),
    }
}
