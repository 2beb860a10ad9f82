//! The console of an orphaned guest: one whose monitor has died.

use crate::process::{GuestRoot, channel};
use crate::terminal::{self, is_master};
use holm_proto::CONSOLE_MASTER;
use holm_sys::process::{self, CloneResult};
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat, openat2};
use rustix::process::{
    PidfdGetfdFlags, Signal, WaitId, WaitIdOptions, pidfd_getfd, pidfd_send_signal, waitid,
};
use rustix::pty::ptsname;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

/// How long the child may search for the console: a filesystem that the guest serves may block it.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A master of the console of the guest with this init and base id; without one the console is lost
/// until the guest's next start.
///
/// The guest may have prepared everything that is opened here. So nothing is read, and a path of
/// the guest's is opened only as `O_PATH` until it has turned out to be a pty's master. A child
/// does the work, because a filesystem that the guest serves itself may never answer, and a process
/// that waits for it may be impossible to kill. FUSE refuses the host's processes, but below an
/// overlay of the guest's it is accessed with the guest's credentials.
pub fn orphan_console(pid: i32, init: &OwnedFd, base: u32) -> Option<OwnedFd> {
    let (parent, inside) = channel().ok()?;
    let pidfd = match process::clone(0, None).ok()? {
        CloneResult::Parent { pidfd, .. } => pidfd,
        CloneResult::Child(child) => {
            // If it hangs it must keep nothing open: neither the guest's lock nor a pipe that the
            // caller reads to its end.
            let [from_parent, to_parent] = inside.descriptors();
            if child.close_all_but(3, &[from_parent, to_parent, init.as_fd()]).is_ok()
                && let Some(master) = kept(init).or_else(|| reopened(pid, base))
            {
                inside.offer(master.as_fd());
            }
            process::exit_now(0);
        }
    };
    drop(inside);
    let found = parent.follow(&pidfd, TIMEOUT);
    if found.is_err() {
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    } else {
        let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
    }
    found.ok().flatten()
}

/// The master that minimal init keeps.
fn kept(init: &OwnedFd) -> Option<OwnedFd> {
    let master = pidfd_getfd(init, CONSOLE_MASTER, PidfdGetfdFlags::empty()).ok()?;
    is_master(master.as_fd()).ok()?.then_some(master)
}

/// A new master for `/dev/pts/0`, which is what the console of a system's own init is.
fn reopened(pid: i32, base: u32) -> Option<OwnedFd> {
    let path = OFlags::PATH | OFlags::CLOEXEC;
    let root = open(format!("/proc/{pid}/root"), path | OFlags::DIRECTORY, Mode::empty()).ok()?;
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let ptmx = openat2(&root, "dev/pts/ptmx", path, Mode::empty(), inside).ok()?;
    if !is_master(ptmx.as_fd()).ok()? {
        return None;
    }
    // Whoever opens it owns the terminal, and the host's root is nobody in the guest: its getty
    // could not open a terminal of that owner.
    let _guest_root = GuestRoot::assume(base).ok()?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let own = format!("/proc/self/fd/{}", ptmx.as_raw_fd());
    let master = openat(rustix::fs::CWD, own, flags, Mode::empty()).ok()?;
    // Only the first terminal of the guest is its console: another would show nothing.
    let name = ptsname(&master, Vec::new()).ok()?;
    terminal::slave(&master).ok()?;
    (name.as_c_str() == c"/dev/pts/0").then_some(master)
}
