use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use holm_sys::mount::{self, attr};
use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_fd,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, open_tree,
};

use super::{Error, Result};

/// A filesystem that is being configured, and then made a detached mount.
///
/// The error of a failing step has the messages that the kernel has logged in the context
/// (fsopen(2)).
#[derive(Debug)]
pub struct Filesystem {
    context: OwnedFd,
    kind: &'static str,
}

impl Filesystem {
    /// Begins a filesystem of type `kind`.
    pub fn open(kind: &'static str) -> Result<Self> {
        let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).map_err(|errno| Error::Mount {
            kind: kind.to_owned(),
            // Any other error says itself what is wrong.
            log: if errno == Errno::NODEV { "this kernel does not have it" } else { "" }.to_owned(),
            source: errno.into(),
        })?;
        Ok(Self { context, kind })
    }

    /// Sets an option to a value.
    pub fn set(self, key: &str, value: impl rustix::path::Arg) -> Result<Self> {
        let result = fsconfig_set_string(self.context.as_fd(), key, value);
        self.check(result)
    }

    /// Sets an option that has no value.
    pub fn flag(self, key: &str) -> Result<Self> {
        let result = fsconfig_set_flag(self.context.as_fd(), key);
        self.check(result)
    }

    /// Sets an option to a descriptor; `None` when this kernel has no such option.
    pub fn fd(self, key: &str, value: BorrowedFd<'_>) -> Option<Self> {
        fsconfig_set_fd(self.context.as_fd(), key, value).is_ok().then_some(self)
    }

    /// Makes the filesystem and a detached mount of it.
    pub fn mount(self, attributes: MountAttrFlags) -> Result<OwnedFd> {
        let result = fsconfig_create(self.context.as_fd());
        let this = self.check(result)?;
        match fsmount(this.context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes) {
            Ok(mount) => Ok(mount),
            Err(errno) => Err(this.refused(errno)),
        }
    }

    fn check(self, result: rustix::io::Result<()>) -> Result<Self> {
        match result {
            Ok(()) => Ok(self),
            Err(errno) => Err(self.refused(errno)),
        }
    }

    fn refused(&self, errno: Errno) -> Error {
        let mut log = Vec::new();
        let mut line = [0; 512];
        while let Ok(length @ 1..) = rustix::io::read(&self.context, &mut line) {
            let text = String::from_utf8_lossy(&line[..length]);
            // A line is "e text": an error, a warning or a notice.
            log.push(text.get(2..).unwrap_or(&text).trim().to_owned());
        }
        Error::Mount { kind: self.kind.to_owned(), log: log.join("; "), source: errno.into() }
    }
}

/// A detached tmpfs of the guest's: its root belongs to the guest's root and has `mode`.
/// `options` are the kernel's (`size`, `nr_inodes`).
pub fn mount_tmpfs(
    mode: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
    user_namespace: Option<BorrowedFd<'_>>,
) -> Result<OwnedFd> {
    // Id 0 before the mapping: without it the root would belong to the maker's id, which means
    // nothing after the mapping.
    let mut memory =
        Filesystem::open("tmpfs")?.set("mode", mode)?.set("uid", "0")?.set("gid", "0")?;
    for (key, value) in options {
        memory = memory.set(key, *value)?;
    }
    let memory = memory.mount(attributes)?;
    if let Some(user_namespace) = user_namespace {
        mount::make_idmapped(memory.as_fd(), user_namespace)
            .map_err(|error| Error::io("make an idmapped mount of", "a tmpfs", error))?;
    }
    Ok(memory)
}

/// A base's metadata image as a detached mount, mounted from the file without a loop device.
pub fn mount_image(image: &Path, attributes: MountAttrFlags) -> Result<OwnedFd> {
    let attributes = attributes | MountAttrFlags::MOUNT_ATTR_RDONLY;
    Filesystem::open("erofs")?.set("source", image)?.mount(attributes)
}

/// A copy of the mount at `path` (of its part below `path`, to be exact), detached, whose
/// owners appear as `user_namespace` maps them, or as they are without one.
pub fn clone_tree(path: &Path, user_namespace: Option<BorrowedFd<'_>>) -> Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = open_tree(CWD, path, flags).map_err(|errno| Error::io("open", path, errno))?;
    if let Some(user_namespace) = user_namespace {
        mount::make_idmapped(tree.as_fd(), user_namespace)
            .map_err(|error| Error::io("make an idmapped mount of", path, error))?;
    }
    Ok(tree)
}

/// Sets these flags on a mount, and clears the others that the table uses.
pub fn set_flags(mount: impl AsFd, flags: MountAttrFlags) -> std::io::Result<()> {
    let all = attr::RDONLY | attr::NOSUID | attr::NODEV | attr::NOEXEC;
    let flags = u64::from(flags.bits());
    mount::set_attributes(mount.as_fd(), flags, all & !flags)
}
