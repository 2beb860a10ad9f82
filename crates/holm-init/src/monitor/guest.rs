//! What the launcher left for the monitor, read from the environment.

use core::ffi::CStr;
use holm_proto::handoff::{self, descriptor, key};
use holm_sys::bare::{Args, Inherited};
use rustix::fd::OwnedFd;

/// Everything a monitor holds of its guest.
pub struct Guest {
    /// The guest's name.
    pub name: &'static CStr,
    /// The Holm root it lives under.
    pub root: &'static CStr,
    /// The `holm` program that takes over when init has ended.
    pub holm: &'static CStr,
    /// Init's pidfd.
    pub init: OwnedFd,
    /// The guest's cgroup.
    pub cgroup: OwnedFd,
    /// The guest's directory on the host.
    pub directory: OwnedFd,
    /// Where clients connect.
    pub listener: OwnedFd,
    /// The lock that keeps the base's image mounted.
    pub image: Option<OwnedFd>,
    /// Where init says that it is ready.
    pub notify: Option<OwnedFd>,
    /// The master of the guest's console.
    pub console: Option<OwnedFd>,
    /// The packet socket on the guest's network.
    pub responder: Option<OwnedFd>,
    /// The netlink socket that tells what the guest asks for its network.
    pub requests: Option<OwnedFd>,
    /// The netlink socket that tells the connections which the guest opens, and the directory in
    /// which they are recorded.
    pub flows: Option<(OwnedFd, OwnedFd)>,
    /// The number of the group in which they are told.
    pub flow_group: Option<i32>,
}

impl Guest {
    /// `None` when something that a monitor cannot do without is missing.
    pub fn take(title: &'static CStr, mut inherited: Inherited) -> Option<Guest> {
        let numbers = Args::env(handoff::DESCRIPTORS)?.to_bytes();
        let mut fd = |key: &str| inherited.take(descriptor(numbers, key)?);
        let name = title.to_bytes_with_nul().strip_prefix(handoff::TITLE.as_bytes())?;
        Some(Guest {
            name: CStr::from_bytes_with_nul(name).ok()?,
            root: Args::env(handoff::ROOT)?,
            holm: Args::env(handoff::HOLM)?,
            init: fd(key::INIT)?,
            cgroup: fd(key::CGROUP)?,
            directory: fd(key::DIRECTORY)?,
            listener: fd(key::LISTENER)?,
            image: fd(key::IMAGE),
            notify: fd(key::NOTIFY),
            console: fd(key::CONSOLE),
            responder: fd(key::RESPONDER),
            requests: fd(key::REQUESTS),
            flows: fd(key::FLOWS).zip(fd(key::FLOW_DIRECTORY)),
            flow_group: descriptor(numbers, key::FLOW_GROUP),
        })
    }
}
