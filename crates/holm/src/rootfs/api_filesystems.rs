use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::mount::{OpenTreeFlags, open_tree};

use super::fsmount::set_flags;
use super::table::Mount;
use super::{Error, Filesystem, Links, Point, Result, Tree};
use crate::process::in_pid_namespace;

/// Mounts a proc of `pid_namespace`. Linux 6.17 has an option for that. Before, a proc
/// shows the pid namespace of the process that mounts it, so a child is sent there: to be removed
/// when 6.17 is the oldest supported kernel.
pub fn attach_proc(tree: &Tree, mount: &Mount, pid_namespace: BorrowedFd<'_>) -> Result<()> {
    let on = Path::new(mount.at);
    let attach = |proc: Filesystem| {
        tree.attach(&proc.mount(mount.flags)?, on, Point::Directory, Links::Refuse)
    };
    if let Some(proc) = Filesystem::open("proc")?.fd("pidns", pid_namespace) {
        return attach(proc);
    }
    in_pid_namespace(pid_namespace, || attach(Filesystem::open("proc")?))
        .map_err(|error| Error::io("mount a proc on the guest's", on, error))
}

/// A second mount of what the guest has at `path`, with the flags of `mount`.
pub fn again(tree: &Tree, path: &Path, mount: &Mount) -> Result<OwnedFd> {
    let there = tree
        .open(path, Links::Refuse)
        .map_err(|errno| Error::io("open the guest's", path, errno))?;
    let copy = copy_of(&there, mount.at)?;
    set_flags(&copy, mount.flags)
        .map_err(|error| Error::io("set the flags of the guest's", mount.at, error))?;
    Ok(copy)
}

/// An empty read-only directory to mask another: a copy of the one that is `there`, if one is.
pub fn empty(there: Option<&OwnedFd>, mount: &Mount) -> Result<OwnedFd> {
    match there {
        Some(there) => copy_of(there, mount.at),
        None => Filesystem::open("tmpfs")?
            .set("mode", "0555")?
            .set("nr_inodes", "2")?
            .mount(mount.flags),
    }
}

fn copy_of(mount: &OwnedFd, at: &str) -> Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(mount, "", flags)
        .map_err(|errno| Error::io("make a mount for the guest's", at, errno))
}
