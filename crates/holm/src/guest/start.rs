use std::convert::Infallible;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use holm_proto::Lease;
use holm_sys::process::{Clone, clone, exit_now};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::error::in_one_line;
use super::folder::{call_off, ended_path, ids};
use super::prepare::{Prepared, fit, notify_socket, reason};
use super::{Error, Result, configured, repaired};
use crate::cgroup::GuestCgroup;
use crate::disk::Layer;
use crate::launch::{Running, Stdio};
use crate::monitor::{self, Handoff};
use crate::net;
use crate::pool::{Name, Pool};
use crate::process::{own_pid, reset_scheduling};
use crate::record::Network;
use crate::step;
use crate::{Code, Details};

/// Starts a stopped guest; returns when its init runs, with a monitor beside it.
///
/// The caller has one thread.
pub fn start(pool: &Pool, name: &Name) -> Result<()> {
    let _lock = pool.lock_guest(name)?;
    if repaired(pool, name)?.is_some() {
        return Err(Error::AlreadyRunning(name.clone()));
    }
    call_off(pool, name)?;
    let start = Start::prepare(pool, name)?;
    let started = in_monitor(pool, name, |ready| start.launch(ready));
    if started.is_err() {
        start.prepared.undo();
    }
    started.map(drop).map_err(|error| reason(pool, error))
}

/// A guest with a folder, about to be started. The caller holds its lock.
pub(super) struct Start<'a> {
    pool: &'a Pool,
    name: &'a Name,
    pub prepared: Prepared<'a>,
}

impl<'a> Start<'a> {
    pub fn prepare(pool: &'a Pool, name: &'a Name) -> Result<Self> {
        let (_, config) = configured(pool, name)?;
        fit(pool)?;
        // Words about an earlier run that a host which went down has kept.
        let _ = std::fs::remove_file(ended_path(pool, name));
        let ids = ids(pool, name, config.security.nesting)?;
        let layer = Layer::on_disk(pool, name);
        Ok(Self { pool, name, prepared: Prepared::new(pool, name, config, ids, layer)? })
    }

    /// Starts the guest and becomes its monitor; returns only an error, and then nothing is left.
    pub fn become_monitor(self) -> Result<Infallible> {
        let result = self.launch(&|| ());
        self.prepared.undo();
        result
    }

    /// Calls `ready` when nothing is left to do but to become the monitor.
    fn launch(&self, ready: &dyn Fn()) -> Result<Infallible> {
        let notify = notify_socket()?;
        let stdio = Stdio::Console { keep: self.prepared.keeps_console() };
        let assembled = self.prepared.assemble(stdio, Some(&notify), own_pid())?;
        // Before init runs: one that ends at once takes its interface along, and its end has to be noted all the same.
        let Prepared { cgroup, plan, .. } = &self.prepared;
        let post = Post::open(self.pool, self.name, cgroup, responder(plan)?)?;
        step::done("socket");
        let running = self.prepared.release(assembled)?;
        let handoff = post.handoff(self.pool, self.name, running, Some(notify));
        ready();
        Ok(monitor::become_monitor(&handoff)?)
    }
}

/// What a monitor needs beside the guest itself: whether that lives makes no difference any more.
pub(super) struct Post {
    holm: PathBuf,
    cgroup: OwnedFd,
    folder: OwnedFd,
    listener: OwnedFd,
    responder: Option<(OwnedFd, Lease)>,
}

impl Post {
    /// Opens all of it, and makes the socket that the monitor's clients find it by.
    pub fn open(
        pool: &Pool,
        name: &Name,
        cgroup: &GuestCgroup,
        responder: Option<(OwnedFd, Lease)>,
    ) -> Result<Self> {
        let run_dir = pool.guest_run_dir(name);
        std::fs::create_dir_all(&run_dir)
            .map_err(|error| Error::io("make the folder", &run_dir, error))?;
        let listener = monitor::listen(&run_dir)
            .map_err(|error| Error::io("make the monitor's socket in", &run_dir, error))?;
        let folder = pool.guest_dir(name);
        let open = |at: BorrowedFd<'_>, path: &Path| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            openat(at, path, flags, Mode::empty())
        };
        Ok(Self {
            holm: own_program()?,
            cgroup: open(cgroup.dir_fd(), Path::new("."))
                .map_err(|errno| Error::io("open the control group of", name.as_str(), errno))?,
            folder: open(CWD, &folder).map_err(|errno| Error::io("open", folder, errno))?,
            listener,
            responder,
        })
    }

    /// All that the monitor of a running guest is given.
    pub fn handoff<'a>(
        self,
        pool: &'a Pool,
        name: &'a Name,
        running: Running,
        notify: Option<OwnedFd>,
    ) -> Handoff<'a> {
        Handoff {
            name: name.as_str(),
            root: pool.root(),
            holm: self.holm,
            init: running.pidfd,
            cgroup: self.cgroup,
            folder: self.folder,
            listener: self.listener,
            notify,
            console: running.console,
            responder: self.responder,
        }
    }
}

/// The responder's socket, and what it offers a guest that asks for its network.
pub(super) fn responder(plan: &Network) -> Result<Option<(OwnedFd, Lease)>> {
    Ok(net::responder(plan)?.map(|socket| (socket, plan.lease())))
}

/// The program that runs, by the path it was started from: an upgrade may have put another there by now.
fn own_program() -> Result<PathBuf> {
    let exe = std::env::current_exe();
    Ok(undeleted(exe.map_err(|error| Error::io("find the program of", "holm", error))?))
}

/// The path without the words that the kernel puts after that of a file which has been replaced.
fn undeleted(path: PathBuf) -> PathBuf {
    match path.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(cut) if !path.exists() => OsStr::from_bytes(cut).into(),
        _ => path,
    }
}

/// What the child says when it has done its work.
const DONE: &str = "\0";

/// Runs `work` in a child in the monitors' control group, which it never returns from when it goes
/// well. It calls the function that it is given just before it becomes the monitor.
pub(super) fn in_monitor(
    pool: &Pool,
    name: &Name,
    work: impl FnOnce(&dyn Fn()) -> Result<Infallible>,
) -> Result<i32> {
    let (hear, tell) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Error::io("make", "a pipe", errno))?;
    let group = pool.cgroup()?.monitors()?;
    let child = clone(0, Some(group.as_fd()))
        .map_err(|error| Error::io("make the process of", "the monitor", error))?;
    let Clone::Parent { pid, pidfd } = child else {
        reset_scheduling();
        let tell = std::fs::File::from(tell);
        let Err(error) = work(&|| drop((&tell).write_all(DONE.as_bytes())));
        let told = serde_json::to_vec(&(in_one_line(&error), Details::of(&error)));
        let _ = (&tell).write_all(&told.unwrap_or_default());
        exit_now(1);
    };
    drop(tell);
    let mut message = String::new();
    std::fs::File::from(hear)
        .read_to_string(&mut message)
        .map_err(|error| Error::io("hear from", "the monitor", error))?;
    if message == DONE {
        return Ok(pid);
    }
    let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
    let (message, details) =
        serde_json::from_str(message.trim_start_matches(DONE)).unwrap_or_else(|_| {
            let killed = "the process that was to become its monitor was killed; try again";
            let details = Details::new(Code::StartFailed).object(name).reason(killed);
            (killed.to_owned(), Box::new(details))
        });
    Err(Error::Start { name: name.clone(), message, details })
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
