use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use holm_sys::mount::make_all_private;
use holm_sys::process::{self, Namespace, flags};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::{PidfdFlags, getpid, pidfd_open};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::child::run_in_child;
use super::{Error, Result};
use crate::failed::in_one_line;
use crate::record::Ids;

/// The launcher's own namespaces, which it leaves and returns to.
#[derive(Debug)]
pub struct HostNamespaces {
    saved: [(OwnedFd, LinkNameSpaceType); 4],
}

impl HostNamespaces {
    /// Opens them.
    pub fn save() -> Result<Self> {
        let fail = |errno| Error::step("open", "the host's namespaces", errno);
        let own = pidfd_open(getpid(), PidfdFlags::empty()).map_err(fail)?;
        let open = |kind, link| -> Result<(OwnedFd, LinkNameSpaceType)> {
            let fd = process::namespace(own.as_fd(), kind)
                .map_err(|error| Error::step("open", "the host's namespaces", error))?;
            Ok((fd, link))
        };
        Ok(Self {
            saved: [
                open(Namespace::Mount, LinkNameSpaceType::Mount)?,
                open(Namespace::Net, LinkNameSpaceType::Network)?,
                open(Namespace::Ipc, LinkNameSpaceType::InterProcessCommunication)?,
                open(Namespace::Cgroup, LinkNameSpaceType::ControlGroup)?,
            ],
        })
    }

    /// Does `work` in the host's mount namespace, and returns to the one that this process is in,
    /// whose root is its root and working directory then.
    pub fn in_mounts<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        let fail = |error| Error::step("open", "the launcher's mount namespace", error);
        let own = pidfd_open(getpid(), PidfdFlags::empty()).map_err(|errno| fail(errno.into()))?;
        let own = process::namespace(own.as_fd(), Namespace::Mount).map_err(fail)?;
        let (host, kind) = &self.saved[0];
        let enter = |namespace: &OwnedFd| move_into_link_name_space(namespace.as_fd(), Some(*kind));
        enter(host).map_err(|errno| Error::step("enter", "the host's mounts", errno))?;
        let result = work();
        enter(&own).map_err(|errno| Error::Stranded(errno.into()))?;
        Ok(result)
    }

    /// Returns to them. The root and the working directory are the host's again.
    pub fn restore(self) -> Result<()> {
        for (fd, kind) in &self.saved {
            move_into_link_name_space(fd.as_fd(), Some(*kind))
                .map_err(|errno| Error::Stranded(errno.into()))?;
        }
        Ok(())
    }
}

/// Leaves the host's mount namespace for a copy whose mounts are private.
pub fn unshare_mounts() -> Result<()> {
    process::unshare(flags::NEWNS)
        .map_err(|error| Error::step("unshare", "the mount namespace", error))?;
    make_all_private().map_err(|error| Error::step("make private", "all mounts", error))
}

/// Writes the id maps of a new user namespace.
pub fn write_id_maps(pid: i32, ids: Ids) -> Result<()> {
    for kind in ["uid", "gid"] {
        let path = format!("/proc/{pid}/{kind}_map");
        fs::write(&path, ids.map()).map_err(|error| Error::step("write", &path, error))?;
    }
    Ok(())
}

/// While this lives, new children of this process are made in another pid namespace. Dropping it
/// switches back: `holm restart` starts the guest after its old init has ended, and in that pid
/// namespace a clone fails with ENOMEM.
#[derive(Debug)]
pub struct PidNamespaceGuard {
    own: OwnedFd,
}

impl PidNamespaceGuard {
    /// Switches to the pid namespace of the process behind `pidfd`.
    pub fn enter(pidfd: BorrowedFd<'_>) -> Result<Self> {
        let fail =
            |error: std::io::Error| Error::step("join the pid namespace of", "the guest", error);
        let own = pidfd_open(getpid(), PidfdFlags::empty()).map_err(|errno| fail(errno.into()))?;
        process::join(pidfd, flags::NEWPID).map_err(fail)?;
        Ok(Self { own })
    }
}

impl Drop for PidNamespaceGuard {
    fn drop(&mut self) {
        let _ = process::join(self.own.as_fd(), flags::NEWPID);
    }
}

/// Runs `work` in a child that is in `pid_namespace`.
pub fn in_pid_namespace<E: std::error::Error>(
    pid_namespace: BorrowedFd<'_>,
    work: impl FnOnce() -> std::result::Result<(), E>,
) -> std::io::Result<()> {
    let kind = Some(LinkNameSpaceType::ProcessID);
    let own = openat(CWD, "/proc/self/ns/pid", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    move_into_link_name_space(pid_namespace, kind)?;
    let result = run_in_child(0, None, || match work() {
        Ok(()) => Ok(String::new()),
        Err(error) => Err(in_one_line(&error)),
    });
    move_into_link_name_space(own.as_fd(), kind)?;
    result.map(drop).map_err(std::io::Error::other)
}
