//! The clocks of a guest, which start at zero with it.
//!
//! Init makes the time namespace, so that the guest's user namespace owns it: one that the host's
//! owned could not be checkpointed, since CRIU enters the namespaces of a guest from its user
//! namespace. The launcher writes the offsets, and once init has entered the namespace the kernel
//! lets nobody change them (`time_namespaces(7)`).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use rustix::time::{ClockId, clock_gettime};

use super::{Error, Result};

/// The time namespace that the caller has made by `unshare`, and is not in yet.
#[derive(Debug)]
pub struct TimeNamespace(OwnedFd);

impl TimeNamespace {
    /// Opens the namespace of the caller's children to come.
    pub fn of_children() -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let own = openat(CWD, "/proc/self/ns/time_for_children", flags, Mode::empty())?;
        Ok(Self(own))
    }

    /// Enters it, which fixes its offsets.
    pub fn enter(self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Time))?)
    }
}

/// Sets the clocks to zero in the time namespace that process `pid` has made for its children.
pub fn reset_clocks(pid: i32) -> Result<()> {
    let monotonic = clock_gettime(ClockId::Monotonic).tv_sec;
    let boottime = clock_gettime(ClockId::Boottime).tv_sec;
    let offsets = format!("monotonic -{monotonic} 0\nboottime -{boottime} 0\n");
    let path = format!("/proc/{pid}/timens_offsets");
    std::fs::write(&path, offsets).map_err(|error| Error::step("write", &path, error))
}
