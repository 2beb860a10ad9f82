use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use holm_sys::mount::{self, attr};
use rustix::fs::CWD;
use rustix::mount::{MountAttrFlags, OpenTreeFlags, open_tree};

use super::{Error, Filesystem, Point, Result, Tree};

/// Nothing on the kernel's filesystems is a program or a device.
const QUIET: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// Mounts the /proc of a pid namespace, in which `masked` files read as empty.
pub fn mount_proc(tree: &Tree, pid_namespace: BorrowedFd<'_>, masked: &[&str]) -> Result<()> {
    attach_proc(tree, pid_namespace)?;
    // The kernel lets a process mount proc or sysfs only where it already sees one that nothing
    // covers: without these, containers in the guest and units with ProtectProc= could not start.
    attach_bare(tree, Path::new("/proc"), Path::new("/dev/.holm/proc"))?;
    for file in masked.iter().map(Path::new).filter(|file| tree.exists(file)) {
        cover(tree, Path::new("/dev/null"), file)?;
    }
    if tree.exists(Path::new(BOOT_ID)) {
        cover(tree, Path::new(BOOT_ID), Path::new("/proc/sys/kernel/random/boot_id"))?;
    }
    Ok(())
}

/// Mounts /sys, in which `masked` folders are empty, /sys/fs/cgroup and /dev/mqueue.
///
/// The caller has joined the ipc, cgroup and network namespaces of the guest's init, and still has its own mount
/// namespace. In the host's network nobody can mount a sysfs: there the host's is bound, read-only.
pub fn mount_sys(tree: &Tree, masked: &[&str], host_network: bool) -> Result<()> {
    let sys = if host_network {
        host_sys()?
    } else {
        // Read-only: systemd takes that for the mark of a container, and starts no udevd.
        let read_only = QUIET | MountAttrFlags::MOUNT_ATTR_RDONLY;
        Filesystem::open("sysfs")?.mount(read_only)?
    };
    tree.attach(&sys, Path::new("/sys"), Point::Folder, false)?;
    let cgroup = Filesystem::open("cgroup2")?.flag("nsdelegate")?.mount(QUIET)?;
    tree.attach(&cgroup, Path::new("/sys/fs/cgroup"), Point::Folder, false)?;
    let mqueue = Filesystem::open("mqueue")?.mount(QUIET)?;
    tree.attach(&mqueue, Path::new("/dev/mqueue"), Point::Folder, false)?;
    if !host_network {
        attach_bare(tree, Path::new("/sys"), Path::new("/dev/.holm/sys"))?;
    }
    empty(tree, masked)
}

/// Mounts what is mounted on `on` once more: writable, as what the guest mounts itself may then be, and not covered yet.
fn attach_bare(tree: &Tree, on: &Path, again: &Path) -> Result<()> {
    let fail = |error| Error::io("mount once more", on, error);
    let mount = tree.open(on, false).map_err(|errno| fail(errno.into()))?;
    let copy = copy_of(&mount, on)?;
    mount::set_attributes(copy.as_fd(), 0, attr::RDONLY).map_err(fail)?;
    tree.attach(&copy, again, Point::Folder, false)
}

/// A boot id of the guest's own, if it is to have one: journald tells boots apart by it.
pub const BOOT_ID: &str = "/dev/.holm/boot_id";

/// Covers those of `folders` that are there with an empty one.
fn empty(tree: &Tree, folders: &[&str]) -> Result<()> {
    let mut folders = folders.iter().map(Path::new).filter(|folder| tree.exists(folder));
    let Some(first) = folders.next() else { return Ok(()) };
    let empty = Filesystem::open("tmpfs")?.set("mode", "0555")?.set("nr_inodes", "2")?;
    let empty = empty.mount(QUIET | MountAttrFlags::MOUNT_ATTR_RDONLY)?;
    // Before Linux 6.15 only a mount that is attached can be copied.
    tree.attach(&empty, first, Point::Folder, false)?;
    folders
        .try_for_each(|folder| tree.attach(&copy_of(&empty, folder)?, folder, Point::Folder, false))
}

/// A second mount of what `mount` shows, with its flags, to cover `place`.
fn copy_of(mount: &OwnedFd, place: &Path) -> Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(mount, "", flags).map_err(|errno| Error::io("cover", place, errno))
}

/// Binds a file of the guest's /dev over one of the kernel's, read-only.
fn cover(tree: &Tree, by: &Path, file: &Path) -> Result<()> {
    let by = tree.open(by, false).map_err(|errno| Error::io("open the guest's", by, errno))?;
    let copy = copy_of(&by, file)?;
    // Devices can be opened here: null is harmless, and nodev would make it unreadable.
    mount::set_attributes(copy.as_fd(), attr::RDONLY | attr::NOSUID | attr::NOEXEC, 0)
        .map_err(|error| Error::io("cover", file, error))?;
    tree.attach(&copy, file, Point::File, false)
}

/// Mounts a proc of `pid_namespace`. Deletable at Linux 6.17: older ones show the pid namespace of the
/// process that mounts, so a child is sent there.
fn attach_proc(tree: &Tree, pid_namespace: BorrowedFd<'_>) -> Result<()> {
    let on = Path::new("/proc");
    if let Some(proc) = Filesystem::open("proc")?.fd("pidns", pid_namespace) {
        return tree.attach(&proc.mount(QUIET)?, on, Point::Folder, false);
    }
    let mount = || tree.attach(&Filesystem::open("proc")?.mount(QUIET)?, on, Point::Folder, false);
    crate::process::in_pid_namespace(pid_namespace, mount)
        .map_err(|error| Error::io("mount a proc on the guest's", on, error))
}

fn host_sys() -> Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let sys = open_tree(CWD, "/sys", flags).map_err(|errno| Error::io("open", "/sys", errno))?;
    mount::set_attributes(sys.as_fd(), attr::RDONLY | attr::NOSUID | attr::NODEV | attr::NOEXEC, 0)
        .map_err(|error| Error::io("make read-only", "/sys", error))?;
    Ok(sys)
}
