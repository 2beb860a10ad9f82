use std::convert::Infallible;
use std::os::fd::OwnedFd;

use holm_proto::path;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::attempt::Attempt;
use super::decision::decide;
use super::error::{Error, Result};
use super::handle::{Guest, LockedGuest};
use super::monitor_process::{MonitorFiles, MonitorSockets, spawn_monitor};
use super::reconcile::reconcile;
use super::requirements::{check_filesystem, check_mounts_answer, explain};
use super::unify;
use crate::config::Config;
use crate::monitor;
use crate::process::{HeldConsole, own_pid};
use crate::step;

/// Starts a stopped guest. Returns when its init runs and has a monitor.
///
/// The calling process must have a single thread.
pub fn start(guest: &Guest<'_>) -> Result<()> {
    start_again(guest, None)
}

/// The same for a guest that has just been stopped, with the terminal that is held for it.
pub(super) fn start_again(guest: &Guest<'_>, held: Option<HeldConsole>) -> Result<()> {
    let locked = guest.lock()?;
    if reconcile(&locked)?.is_some() {
        return Err(Error::AlreadyRunning(guest.name().clone()));
    }
    locked.cancel_restart()?;
    let mut attempt = begin(&locked, |_| Ok(())).map_err(|error| explain(guest.pool(), error))?;
    attempt.held = held;
    let let_go = || attempt.held.iter().for_each(HeldConsole::let_go);
    let started = spawn_monitor(guest, |ready| launch_and_monitor(&attempt, ready), let_go);
    if started.is_err() {
        attempt.undo();
    }
    started.map(drop).map_err(|error| explain(guest.pool(), error))
}

/// Decides how the guest is started, from its settings, and begins the attempt. For a process that
/// starts the guest itself, without a parent that bounds it.
pub(super) fn begin_alone<'a>(guest: &LockedGuest<'a>) -> Result<Attempt<'a>> {
    begin(guest, |config| check_mounts_answer(guest, config))
}

fn begin<'a>(
    guest: &LockedGuest<'a>,
    check: impl FnOnce(&Config) -> Result<()>,
) -> Result<Attempt<'a>> {
    let (_, config) = guest.config()?;
    check(&config)?;
    check_filesystem(guest.pool())?;
    unify::finish(guest, &config)?;
    // One may be left if the host went down while the guest was running.
    guest.remove_end_note();
    let ids = guest.ids(config.security.nesting)?;
    let layer = guest.place(ids).ready(&config.disk)?;
    Attempt::begin(decide(**guest, config, ids, layer, false)?)
}

/// Starts the guest and becomes its monitor. Returns only if that fails, with the attempt undone.
pub(super) fn become_monitor(attempt: Attempt<'_>) -> Result<Infallible> {
    let result = launch_and_monitor(&attempt, &|| ());
    attempt.undo();
    result
}

/// Starts the guest and becomes its monitor. Calls `ready` just before the latter; undoes nothing
/// if it fails.
fn launch_and_monitor(attempt: &Attempt<'_>, ready: &dyn Fn()) -> Result<Infallible> {
    let decision = &attempt.decision;
    let (files, running, notify) = attempt.launch(|filter| {
        let notify = notify_socket()?;
        let assembled = attempt.assemble(decision.console(), Some(&notify), own_pid(), filter)?;
        // Opened before init runs: if init ends at once, its interface is gone, but its end must
        // still be recorded.
        let sockets = MonitorSockets::open(&decision.guest, &decision.network);
        let files = sockets.and_then(|sockets| {
            MonitorFiles::open(&decision.guest, &attempt.cgroup, attempt.image(), sockets)
        });
        let files = match files {
            Ok(files) => files,
            Err(error) => return Err(assembled.abandon(error)),
        };
        step::done("socket");
        Ok((files, attempt.release(assembled)?, notify))
    })?;
    let handoff = files.handoff(&decision.guest, running, Some(notify));
    ready();
    Ok(monitor::become_monitor(&handoff)?)
}

/// The socket for the guest's readiness message.
fn notify_socket() -> Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| Error::io("make a socket for", path::NOTIFY, errno))?;
    // The monitor would have to close descriptors that a guest sends, which may take long. On
    // kernels that cannot refuse them a timer bounds that time.
    let _ = holm_sys::socket::take_no_descriptors(&socket);
    Ok(socket)
}
