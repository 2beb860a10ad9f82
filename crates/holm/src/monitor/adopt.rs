//! A new monitor's view of a guest that has lost its own.

use super::{Error, Handoff, listen};
use crate::launch::channel;
use crate::terminal::{self, is_master};
use holm_sys::exec::close_all_but;
use holm_sys::process::{self, Clone};
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat, openat2};
use rustix::process::{
    PidfdGetfdFlags, Signal, WaitId, WaitIdOptions, pidfd_getfd, pidfd_send_signal, waitid,
};
use rustix::pty::ptsname;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// Where Holm's minimal init keeps the console's master.
const CONSOLE_MASTER: i32 = 10;

/// How long a guest's own filesystem may keep the search for the console waiting.
const PATIENCE: Duration = Duration::from_secs(2);

/// A running guest without a monitor.
#[derive(Debug)]
pub struct Running<'a> {
    /// The guest's name.
    pub name: &'a str,
    /// The Holm root.
    pub root: &'a Path,
    /// The `holm` program to execute when init has ended.
    pub holm: &'a Path,
    /// Init's pid on the host.
    pub pid: i32,
    /// Init's pidfd, which the caller has seen to be this guest's init.
    pub init: OwnedFd,
    /// The guest's cgroup folder, opened for reading.
    pub cgroup: OwnedFd,
    /// The guest's folder below the root.
    pub folder: &'a Path,
    /// The guest's folder below the run folder; exists.
    pub run_dir: &'a Path,
    /// The guest was started with a console.
    pub console: bool,
    /// As in [`Handoff`].
    pub responder: Option<(OwnedFd, String)>,
}

/// What became of the guest's console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Its terminal is in the new monitor's hands.
    Console,
    /// It writes to its FIFO, which the new monitor reads.
    Output,
    /// Lost until the guest's next start.
    Lost,
}

/// Collects what a new monitor needs; [`super::become_monitor`] in a child of the caller is the next step.
///
/// The guest may have prepared everything that is opened here: nothing is read, and nothing opened by a path of the
/// guest before it was seen to be what it should be.
pub fn adopt(guest: Running<'_>) -> Result<(Handoff<'_>, Found), Error> {
    let name = guest.name;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = open(guest.folder, flags, Mode::empty())
        .map_err(io::Error::from)
        .map_err(Error::system(name, format!("cannot open {}", guest.folder.display())))?;
    let listener = listen(guest.run_dir).map_err(Error::system(
        name,
        format!("cannot listen in {} for those who look at its console", guest.run_dir.display()),
    ))?;
    let console = if guest.console { console(&guest) } else { None };
    let output = if guest.console { None } else { output(&folder) };
    let found = match (&console, &output) {
        (Some(_), _) => Found::Console,
        (_, Some(_)) => Found::Output,
        _ => Found::Lost,
    };
    let handoff = Handoff {
        name,
        root: guest.root,
        holm: guest.holm,
        pid: guest.pid,
        init: guest.init,
        cgroup: guest.cgroup,
        folder,
        listener,
        notify: None,
        console,
        output,
        responder: guest.responder,
    };
    Ok((handoff, found))
}

/// The guest's console. A child looks for it: a filesystem that the guest serves itself may stand in the way and never
/// answer, and whoever waits for that can perhaps not even be killed. FUSE refuses the host's processes, but below an
/// overlay of the guest's it is asked with the guest's rights.
fn console(guest: &Running<'_>) -> Option<OwnedFd> {
    let (parent, inside) = channel().ok()?;
    let Clone::Parent { pidfd, .. } = process::clone(0, None).ok()? else {
        // Left behind it must hold nothing: not the guest's lock, not what its starter reads until the end.
        let [go, report] = inside.descriptors();
        if close_all_but(3, &[go, report, guest.init.as_fd()]).is_ok()
            && let Some(master) = kept(guest).or_else(|| reopened(guest.pid))
        {
            inside.offer(master.as_fd());
        }
        process::exit_now(0);
    };
    drop(inside);
    let found = parent.follow(&pidfd, Some(PATIENCE));
    if found.is_err() {
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    } else {
        let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
    }
    found.ok().flatten()
}

/// The master that the minimal init keeps.
fn kept(guest: &Running<'_>) -> Option<OwnedFd> {
    let master = pidfd_getfd(&guest.init, CONSOLE_MASTER, PidfdGetfdFlags::empty()).ok()?;
    is_master(master.as_fd()).then_some(master)
}

/// A new master for `/dev/pts/0`, which is what the console of a system's own init is.
fn reopened(pid: i32) -> Option<OwnedFd> {
    let path = OFlags::PATH | OFlags::CLOEXEC;
    let root = open(format!("/proc/{pid}/root"), path | OFlags::DIRECTORY, Mode::empty()).ok()?;
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let ptmx = openat2(&root, "dev/pts/ptmx", path, Mode::empty(), inside).ok()?;
    if !is_master(ptmx.as_fd()) {
        return None;
    }
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let own = format!("/proc/self/fd/{}", ptmx.as_raw_fd());
    let master = openat(rustix::fs::CWD, own, flags, Mode::empty()).ok()?;
    // Only the first terminal of the guest is its console: another would stay silent.
    let name = ptsname(&master, Vec::new()).ok()?;
    terminal::slave(&master).ok()?;
    (name.as_c_str() == c"/dev/pts/0").then_some(master)
}

/// The reading end of the FIFO in the guest's folder.
fn output(folder: &OwnedFd) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, "output", flags, Mode::empty()).ok()
}
