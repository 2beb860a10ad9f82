use std::convert::Infallible;
use std::os::fd::OwnedFd;

use holm_proto::path;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::attempt::Attempt;
use super::decision::decide;
use super::error::{Error, Result};
use super::handle::{Guest, LockedGuest};
use super::monitor_process::{MonitorFiles, responder, spawn_monitor};
use super::reconcile::reconcile;
use super::requirements::{check_filesystem, explain};
use crate::disk::Layer;
use crate::launch::Stdio;
use crate::monitor;
use crate::process::own_pid;
use crate::step;

/// Starts a stopped guest; returns when its init runs, with a monitor beside it.
///
/// The caller has one thread.
pub fn start(guest: &Guest<'_>) -> Result<()> {
    let locked = guest.lock()?;
    if reconcile(&locked)?.is_some() {
        return Err(Error::AlreadyRunning(guest.name().clone()));
    }
    locked.cancel_restart()?;
    let attempt = begin(&locked)?;
    let started = spawn_monitor(guest, |ready| launch_and_watch(&attempt, ready));
    if started.is_err() {
        attempt.undo();
    }
    started.map(drop).map_err(|error| explain(guest.pool(), error))
}

/// Decides on a start by the guest's settings, and begins it.
pub(super) fn begin<'a>(guest: &LockedGuest<'a>) -> Result<Attempt<'a>> {
    let (_, config) = guest.config()?;
    check_filesystem(guest.pool())?;
    // The end of an earlier run, which a host that went down has kept.
    guest.remove_end_note();
    let ids = guest.ids(config.security.nesting)?;
    let layer = Layer::on_disk(guest.pool(), guest.name());
    Attempt::begin(decide(**guest, config, ids, layer)?)
}

/// Starts the guest and becomes its monitor; returns only an error, and then nothing is left.
pub(super) fn become_monitor(attempt: Attempt<'_>) -> Result<Infallible> {
    let result = launch_and_watch(&attempt, &|| ());
    attempt.undo();
    result
}

/// The same; calls `ready` when the only thing left to do is to become the monitor.
fn launch_and_watch(attempt: &Attempt<'_>, ready: &dyn Fn()) -> Result<Infallible> {
    let decision = &attempt.decision;
    let notify = notify_socket()?;
    let stdio = Stdio::Console { keep: decision.is_minimal() };
    let assembled = attempt.assemble(stdio, Some(&notify), own_pid())?;
    // Before init runs: one that ends at once takes its interface along, and its end has to be noted all the same.
    let responder = responder(&decision.network)?;
    let files = MonitorFiles::open(&decision.guest, &attempt.cgroup, responder)?;
    step::done("socket");
    let running = attempt.release(assembled)?;
    let handoff = files.handoff(&decision.guest, running, Some(notify));
    ready();
    Ok(monitor::become_monitor(&handoff)?)
}

/// A socket for the guest's readiness message.
fn notify_socket() -> Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| Error::io("make a socket for", path::NOTIFY, errno))?;
    // The monitor would close what comes, which may take long. Where the kernel cannot refuse it, a timer bounds that.
    let _ = holm_sys::socket::take_no_descriptors(&socket);
    Ok(socket)
}
