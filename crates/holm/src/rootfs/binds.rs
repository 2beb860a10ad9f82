use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use holm_sys::mount::{self, attr};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::mount::{OpenTreeFlags, open_tree};

use super::{Error, Point, Result, Tree};
use crate::config::BindMount;

/// Binds host folders and files into the guest, their owners mapped: root's files are guest root's.
pub fn bind_all(tree: &Tree, binds: &[BindMount], user_namespace: BorrowedFd<'_>) -> Result<()> {
    binds.iter().try_for_each(|bind| bind_one(tree, bind, user_namespace))
}

fn bind_one(tree: &Tree, bind: &BindMount, user_namespace: BorrowedFd<'_>) -> Result<()> {
    let refuse = |reason: String| Error::Source { path: bind.source.clone(), reason };
    let source = open_source(&bind.source).map_err(|errno| refuse(explain(errno)))?;
    let stat = rustix::fs::fstat(&source).map_err(|errno| refuse(errno.to_string()))?;
    let point = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Point::Folder,
        FileType::RegularFile | FileType::Socket => Point::File,
        _ => return Err(refuse("only folders, files and sockets can be bound".to_owned())),
    };
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    let clone = open_tree(&source, "", flags).map_err(|errno| refuse(errno.to_string()))?;
    let read_only = if bind.read_only { attr::RDONLY } else { 0 };
    mount::set_attributes(clone.as_fd(), attr::NODEV | attr::NOSUID | read_only, 0)
        .map_err(|error| refuse(error.to_string()))?;
    mount::map_ids(clone.as_fd(), user_namespace).map_err(|error| {
        refuse(format!(
            "its filesystem cannot map owners ({error}); use a folder on ext4, XFS, btrfs or tmpfs"
        ))
    })?;
    tree.attach(&clone, &bind.target, point, true)
}

/// Opens the source; a link anywhere on the way is refused, since whoever can change it would choose
/// what the guest sees.
fn open_source(path: &Path) -> rustix::io::Result<std::os::fd::OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
}

fn explain(errno: Errno) -> String {
    match errno {
        Errno::NOENT => "it does not exist on the host; make it, or change `mounts`".to_owned(),
        Errno::LOOP => {
            "it is, or lies behind, a symbolic link; name the real path (`realpath` shows it)"
                .to_owned()
        }
        other => other.to_string(),
    }
}
