use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use super::init::Init;
use crate::cgroup::GuestCgroup;
use crate::config::Rlimit;
use crate::launch::Assembly;
use crate::process::HeldConsole;
use crate::rootfs;

/// Everything that a launch needs.
pub struct Spec<'a> {
    /// What the guest is assembled from.
    pub assembly: Assembly<'a>,
    /// The guest's cgroup.
    pub cgroup: &'a GuestCgroup,
    /// Resource limits of init, beyond the defaults.
    pub rlimits: &'a BTreeMap<String, Rlimit>,
    /// Process 1.
    pub init: Init,
    /// Who loads its system call filter.
    pub filter: FilterLoader,
    /// Writes init's process id into the run record before init is released, so that the record
    /// names it even if the launcher is killed.
    pub record: &'a dyn Fn(i32) -> Result<(), String>,
    /// Mounts the base's image for all its guests, in the host's mount namespace, and returns a
    /// detached copy of the mount; `None` where the root has no use for it.
    pub image: Option<&'a dyn Fn() -> rootfs::Result<OwnedFd>>,
    /// A terminal that is held for its console.
    pub held: Option<&'a HeldConsole>,
}

/// Who loads the system call filter of a guest's init.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterLoader {
    /// Init itself, while the launcher makes its mounts.
    Init,
    /// A helper that is root on the host, whom the limit on memory for compiled filters
    /// (`net.core.bpf_jit_limit`) does not bind. It clones init, which so has the filter.
    Helper,
}

/// A guest that runs.
#[derive(Debug)]
pub struct Running {
    /// Init's pidfd.
    pub pidfd: OwnedFd,
    /// The master of init's console, if it has one.
    pub console: Option<OwnedFd>,
}
