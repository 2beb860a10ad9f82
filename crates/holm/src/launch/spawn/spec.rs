use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use super::init::Init;
use crate::cgroup::GuestCgroup;
use crate::config::Rlimit;
use crate::launch::Assembly;

/// Everything a launch needs, decided.
#[expect(missing_debug_implementations, reason = "a function has no Debug")]
pub struct Spec<'a> {
    /// What the guest is assembled from.
    pub assembly: Assembly<'a>,
    /// Where the guest's processes go.
    pub cgroup: &'a GuestCgroup,
    /// Resource limits of init, beyond the defaults.
    pub rlimits: &'a BTreeMap<String, Rlimit>,
    /// Process 1.
    pub init: Init,
    /// Told init's process id before init may run, so that a guest whose launcher is killed is known.
    pub record: &'a dyn Fn(i32) -> Result<(), String>,
}

/// A guest that runs.
#[derive(Debug)]
pub struct Running {
    /// Init's process id on the host.
    pub pid: i32,
    /// Init.
    pub pidfd: OwnedFd,
    /// The master of init's console, if it has one.
    pub console: Option<OwnedFd>,
}
