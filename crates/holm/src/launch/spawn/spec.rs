use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use super::init::Init;
use crate::cgroup::GuestCgroup;
use crate::config::Rlimit;
use crate::launch::Assembly;

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
    /// Writes init's process id into the run record before init is released, so that the record
    /// names it even if the launcher is killed.
    pub record: &'a dyn Fn(i32) -> Result<(), String>,
}

/// A guest that runs.
#[derive(Debug)]
pub struct Running {
    /// Init's pidfd.
    pub pidfd: OwnedFd,
    /// The master of init's console, if it has one.
    pub console: Option<OwnedFd>,
}
