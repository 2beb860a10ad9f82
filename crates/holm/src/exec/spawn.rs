use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use holm_sys::process::{CloneResult, clone, flags};
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

use super::child::{self, Plan};
use super::command::{Command, Streams};
use super::{Error, Result};
use crate::cgroup::GuestCgroup;
use crate::net;
use crate::process::{self, PidNamespaceGuard, channel};
use crate::record::RunRecord;

/// How long a command may take from the clone to its program; one with a terminal, each step.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Starts a command; returns its process, and the master of its terminal if it has one.
pub fn spawn(
    record: &RunRecord,
    cgroup: &GuestCgroup,
    command: &Command,
    streams: Streams,
) -> Result<(OwnedFd, Option<OwnedFd>)> {
    let gone = || Error::step("find init of", "the guest", rustix::io::Errno::SRCH);
    let init = record.init()?.ok_or_else(gone)?;
    let (parent_end, child_end) = channel()?;
    let tasks = cgroup.open_v1_tasks()?;
    let offers_console = streams.terminals().contains(&true);
    let mut joined =
        flags::NEWUSER | flags::NEWUTS | flags::NEWIPC | flags::NEWCGROUP | flags::NEWTIME;
    if net::has_own_namespace(&record.network) {
        joined |= flags::NEWNET;
    }
    process::hide_values(&command.env)
        .map_err(|error| Error::step("hide the environment of", "the command", error))?;
    let cloned = {
        let _guard = PidNamespaceGuard::enter(init.as_fd())?;
        clone_into_leaf(cgroup)?
    };
    let pidfd = match cloned {
        CloneResult::Parent { pidfd, .. } => pidfd,
        CloneResult::Child(process) => {
            drop(parent_end);
            let plan = Plan { record, command, streams, init, joined, tasks };
            child::run(&plan, &process, &child_end)
        }
    };
    drop(child_end);
    let waited = if offers_console { Ok(()) } else { parent_end.wait_until_closed(TIMEOUT) };
    match waited.and_then(|()| parent_end.follow(&pidfd, TIMEOUT)) {
        Ok(console) if parent_end.came_to_exec() => Ok((pidfd, console)),
        Ok(_) => {
            let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
            Err(process::Error::CommandKilled.into())
        }
        Err(error @ process::Error::Timeout) => {
            // Not reaped: it may wait for a filesystem that the guest serves, and that cannot be
            // interrupted.
            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
            Err(error.into())
        }
        Err(error) => {
            let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
            Err(command.failed(error, record.ids.count))
        }
    }
}

/// Makes a child in the guest's leaf, or in a new leaf if the guest has made that one unusable, for
/// example by enabling controllers in it.
fn clone_into_leaf(cgroup: &GuestCgroup) -> Result<CloneResult> {
    let leaf = cgroup.leaf_fd()?;
    clone(0, Some(leaf.as_fd()))
        .or_else(|_| {
            let fresh = cgroup.fresh_leaf_fd().map_err(std::io::Error::other)?;
            clone(0, Some(fresh.as_fd()))
        })
        .map_err(|error| Error::step("make a process in", "the guest's cgroup", error))
}
