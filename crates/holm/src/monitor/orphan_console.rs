//! The console of an orphaned guest: one whose monitor has died.

use crate::failed::unless_gone;
use crate::process::{Error, GuestRoot, Step, channel, end_child};
use crate::terminal::{self, is_master};
use holm_proto::CONSOLE_MASTER;
use holm_sys::process::{self, CloneResult};
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat, openat2};
use rustix::io::Errno;
use rustix::process::{
    PidfdGetfdFlags, Signal, WaitId, WaitIdOptions, pidfd_getfd, pidfd_send_signal, waitid,
};
use rustix::pty::ptsname;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long the child may search for the console: a filesystem that the guest serves may block it.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long the programs on the console that lost its master may take to close it: its number is
/// free only then.
const HANGUP: Duration = Duration::from_secs(1);
/// How often that is looked at; nothing tells it.
const STEP: Duration = Duration::from_millis(10);
/// What errors are about.
const CONSOLE: &str = "the guest's console";

/// A master of the console of the guest with this init and base id; `None` if the guest has none
/// that could be opened again: then the console is lost until the guest's next start.
///
/// The guest may have prepared everything that is opened here. So nothing is read, and a path of
/// the guest's is opened only as `O_PATH` until it has turned out to be a pty's master. A child
/// does the work, because a filesystem that the guest serves itself may never answer, and a process
/// that waits for it may be impossible to kill. FUSE refuses the host's processes, but below an
/// overlay of the guest's it is accessed with the guest's credentials.
///
/// For the same reason an error at a path of the guest's means only that there is no console: a
/// guest could otherwise keep itself from being adopted. Every other error is one.
pub fn orphan_console(pid: i32, init: &OwnedFd, base: u32) -> Result<Option<OwnedFd>, Error> {
    let (parent, inside) = channel()?;
    let cloned = process::clone(0, None);
    let cloned = cloned.map_err(|e| Error::step("make a process to look for", CONSOLE, e))?;
    let pidfd = match cloned {
        CloneResult::Parent { pidfd, .. } => pidfd,
        CloneResult::Child(child) => {
            // If it hangs it must keep nothing open: neither the guest's lock nor a pipe that the
            // caller reads to its end.
            let [from_parent, to_parent] = inside.descriptors();
            let found =
                child.close_all_but(3, &[from_parent, to_parent, init.as_fd()]).and_then(|()| {
                    match kept(init)? {
                        None => reopened(pid, base),
                        master => Ok(master),
                    }
                });
            match found {
                Ok(Some(master)) => inside.offer(master.as_fd()),
                Ok(None) => {}
                Err(error) => inside.fail(Step::Console, &error),
            }
            process::exit_now(0);
        }
    };
    drop(inside);
    match parent.follow(&pidfd, TIMEOUT) {
        // It may wait in the kernel for a filesystem of the guest's, where no signal ends it.
        Err(Error::Timeout) => {
            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
            Ok(None)
        }
        Err(error) => {
            end_child(&pidfd);
            Err(error)
        }
        Ok(found) => {
            let ended = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
            let ended = ended
                .map_err(|e| Error::step("wait for the process that looks for", CONSOLE, e))?;
            let whole = ended.is_some_and(|status| status.exit_status() == Some(0));
            if whole { Ok(found) } else { Err(Error::step("look for", CONSOLE, Errno::SRCH)) }
        }
    }
}

/// The master that minimal init keeps; `None` if it keeps none, or has ended.
fn kept(init: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    match pidfd_getfd(init, CONSOLE_MASTER, PidfdGetfdFlags::empty()) {
        // It may be a file that the guest serves, whose errors are the guest's.
        Ok(master) => Ok(is_master(master.as_fd()).unwrap_or(false).then_some(master)),
        Err(Errno::BADF | Errno::SRCH) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// A new master for `/dev/pts/0`, which is what the console of a system's own init is.
fn reopened(pid: i32, base: u32) -> io::Result<Option<OwnedFd>> {
    let path = OFlags::PATH | OFlags::CLOEXEC;
    let root = open(format!("/proc/{pid}/root"), path | OFlags::DIRECTORY, Mode::empty());
    let Some(root) = unless_gone(root.map_err(io::Error::from))? else { return Ok(None) };
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let Ok(ptmx) = openat2(&root, "dev/pts/ptmx", path, Mode::empty(), inside) else {
        return Ok(None);
    };
    if !is_master(ptmx.as_fd()).unwrap_or(false) {
        return Ok(None);
    }
    // Whoever opens it owns the terminal, and the host's root is nobody in the guest: its getty
    // could not open a terminal of that owner.
    let _guest_root = GuestRoot::assume(base).map_err(io::Error::other)?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let own = format!("/proc/self/fd/{}", ptmx.as_raw_fd());
    let begin = Instant::now();
    loop {
        // The guest may have used up its terminals, or the host's.
        let Ok(master) = openat(rustix::fs::CWD, &own, flags, Mode::empty()) else {
            return Ok(None);
        };
        // Only the first terminal of the guest is its console: another would show nothing.
        if ptsname(&master, Vec::new())?.as_c_str() == c"/dev/pts/0" {
            return Ok(terminal::slave(&master).is_ok().then_some(master));
        }
        drop(master);
        if begin.elapsed() > HANGUP {
            return Ok(None);
        }
        std::thread::sleep(STEP);
    }
}
