//! Spawning the process that becomes a guest's monitor, and collecting what it needs.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holm_sys::process::{CloneResult, clone, exit_now};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::pipe::{PipeFlags, pipe_with};

use super::error::{Error, Result};
use super::handle::Guest;
use crate::cgroup::GuestCgroup;
use crate::failed::{in_one_line, make_directories};
use crate::flows;
use crate::launch::Running;
use crate::monitor::{self, Handoff};
use crate::net;
use crate::process::{self, end_child, kill_and_wait, readable_within, reset_scheduling};
use crate::record::Network;
use crate::rootfs::SharedImage;
use crate::step;
use crate::{Code, Details};

/// What a monitor is given besides init and its console. All of it is opened before init is
/// released: an init that ends at once takes its network interface with it.
pub(super) struct MonitorFiles {
    holm: PathBuf,
    cgroup: OwnedFd,
    directory: OwnedFd,
    listener: OwnedFd,
    image: Option<OwnedFd>,
    network: MonitorSockets,
}

/// What a monitor is given of its guest's network.
#[derive(Default)]
pub(super) struct MonitorSockets {
    /// By what the guest is answered, if its network has a responder.
    responder: Option<monitor::Responder>,
    /// Where the guest's connections are told and recorded, with `net.flows`.
    flows: Option<monitor::Flows>,
}

impl MonitorSockets {
    pub fn open(guest: &Guest<'_>, network: &Network) -> Result<Self> {
        let responder = net::responder(network)?.map(|net::Responder { replies, requests }| {
            monitor::Responder { replies, requests, lease: network.lease() }
        });
        let flows = match net::flows(network)? {
            None => None,
            Some((socket, group)) => {
                let directory = flows::directory(guest.pool(), guest.name())?;
                Some(monitor::Flows { socket, group, directory })
            }
        };
        Ok(Self { responder, flows })
    }
}

impl MonitorFiles {
    /// Opens all of it, and makes the monitor's socket.
    pub fn open(
        guest: &Guest<'_>,
        cgroup: &GuestCgroup,
        image: Option<&SharedImage>,
        network: MonitorSockets,
    ) -> Result<Self> {
        let (name, run_dir, directory) = (guest.name(), guest.run_dir(), guest.dir());
        make_directories(&run_dir, 0o755)
            .map_err(|error| Error::io("make the directory", &run_dir, error))?;
        let listener = monitor::listen(&run_dir)
            .map_err(|error| Error::io("make the monitor's socket in", &run_dir, error))?;
        let open = |at: BorrowedFd<'_>, path: &Path| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            openat(at, path, flags, Mode::empty())
        };
        Ok(Self {
            holm: own_program()?,
            cgroup: open(cgroup.dir_fd(), Path::new("."))
                .map_err(|errno| Error::io("open the cgroup of", name.as_str(), errno))?,
            directory: open(CWD, &directory)
                .map_err(|errno| Error::io("open", directory, errno))?,
            listener,
            image: image
                .map(|image| image.lock().try_clone_to_owned())
                .transpose()
                .map_err(|error| Error::io("keep the image's lock for", name.as_str(), error))?,
            network,
        })
    }

    /// The complete handoff to the monitor of a running guest.
    pub fn handoff<'a>(
        self,
        guest: &Guest<'a>,
        init: Running,
        notify: Option<OwnedFd>,
    ) -> Handoff<'a> {
        Handoff {
            name: guest.name().as_str(),
            root: guest.pool().root(),
            holm: self.holm,
            init: init.pidfd,
            cgroup: self.cgroup,
            directory: self.directory,
            listener: self.listener,
            image: self.image,
            notify,
            console: init.console,
            responder: self.network.responder,
            flows: self.network.flows,
        }
    }
}

/// The path that this program was started from. An upgrade may have put a newer one there since.
fn own_program() -> Result<PathBuf> {
    let exe = std::env::current_exe();
    Ok(undeleted(exe.map_err(|error| Error::io("find the program of", "holm", error))?))
}

/// The path without the ` (deleted)` that the kernel appends if the file has been replaced.
fn undeleted(path: PathBuf) -> PathBuf {
    match path.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(cut) if !path.exists() => OsStr::from_bytes(cut).into(),
        _ => path,
    }
}

/// What the child writes to the pipe just before it becomes the monitor, that is, executes its
/// program. The pipe closes on exec, so the parent reads `DONE` if that succeeded, `DONE` and an
/// error if it did not, an error alone if the start failed before, and nothing if the child was
/// killed.
const DONE: &str = "\0";

/// After this time a command says how far the start has come.
const SILENT: Duration = Duration::from_secs(5);

/// How long a start may take. It is milliseconds; each wait for init has two minutes, which a host
/// without memory may need.
const LONGEST: Duration = Duration::from_mins(3);

/// Spawns the process that becomes a guest's monitor, in the monitors' cgroup, and returns
/// its process id.
///
/// `work` runs in the child and returns only if it fails. It must call its argument
/// just before it becomes the monitor. `cloned` is called here once the child is there.
pub(super) fn spawn_monitor(
    guest: &Guest<'_>,
    work: impl FnOnce(&dyn Fn()) -> Result<Infallible>,
    cloned: impl FnOnce(),
) -> Result<i32> {
    let (read, write) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Error::io("make", "a pipe", errno))?;
    let cgroup = guest.pool().cgroup()?.monitors()?;
    let child =
        clone(0, Some(cgroup.as_fd())).map_err(|error| Error::io("clone", "the monitor", error))?;
    let CloneResult::Parent { pid, pidfd } = child else {
        reset_scheduling();
        let write = std::fs::File::from(write);
        let Err(error) = work(&|| drop((&write).write_all(DONE.as_bytes())));
        let report = serde_json::to_vec(&(in_one_line(&error), Details::of(&error)));
        let _ = (&write).write_all(&report.unwrap_or_default());
        exit_now(1);
    };
    drop(write);
    cloned();
    let message = report(guest, pid, &pidfd, read)?;
    if message == DONE {
        return Ok(pid);
    }
    // It has failed and ends by itself, unless it could not say that it has not.
    end_child(&pidfd);
    let name = guest.name();
    let (message, details) =
        serde_json::from_str(message.trim_start_matches(DONE)).unwrap_or_else(|_| {
            let killed = "the process that was to become its monitor was killed; try again";
            let details = Details::new(Code::StartFailed).object(name).reason(killed);
            (killed.to_owned(), Box::new(details))
        });
    Err(Error::Start { name: name.clone(), message, details })
}

/// What the child says in the end. It is killed if it does not end in time.
fn report(guest: &Guest<'_>, pid: i32, child: &OwnedFd, pipe: OwnedFd) -> Result<String> {
    let fail = |error| Error::io("read from", "the monitor", error);
    let ended = |within| readable_within(&pipe, within).map_err(|errno| fail(errno.into()));
    let longest = step::limit("HOLM_START_MS", LONGEST);
    let silent = SILENT.min(longest);
    if !ended(silent)? {
        let (name, seconds) = (guest.name(), silent.as_secs());
        let how_far = process::how_far(pid);
        guest.pool().report_repair(&format!(
            "the start of guest {name} takes more than {seconds} s: {how_far}; `holm kill {name}` \
             ends it"
        ));
        if !ended(longest.saturating_sub(silent))? {
            let how_far = process::how_far(pid);
            // One that even this does not end holds nothing but its memory and the lock.
            kill_and_wait(child)?;
            return Err(Error::StartStuck { name: name.clone(), time: longest, how_far });
        }
    }
    let mut message = String::new();
    std::fs::File::from(pipe).read_to_string(&mut message).map_err(fail)?;
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_program_keeps_its_path() {
        for (path, want) in [
            ("/nowhere/holm (deleted)", "/nowhere/holm"),
            ("/nowhere/holm", "/nowhere/holm"),
            ("/nowhere/(deleted)", "/nowhere/(deleted)"),
        ] {
            assert_eq!(undeleted(path.into()), Path::new(want));
        }
    }
}
