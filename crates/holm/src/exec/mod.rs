//! Running a command in a guest that runs.
//!
//! One clone: this process sends its children into the guest's pid namespace, makes one in the
//! guest's cgroup, and that child joins the other namespaces, gives up what the guest's init has given
//! up, and executes the command.

mod child;
mod error;
mod foreground;
mod user;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use holm_sys::process::{Clone, clone, flags};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

pub use error::Error;
pub(crate) use foreground::converse;

use crate::cgroup::GuestCgroup;
use crate::guest;
use crate::net;
use crate::pool::{Name, Pool};
use crate::process::{self, PidNamespaceGuard, channel, ended_within};
use crate::record::RunRecord;
use crate::terminal::{self, Terminals};
use holm_proto::Ended;

/// The result of what this module does.
pub type Result<T> = std::result::Result<T, Error>;

/// What to run in a guest, and as whom.
#[derive(Debug, Clone, Default)]
pub struct Command {
    /// Program and arguments; empty for the user's login shell.
    pub argv: Vec<String>,
    /// Added to the environment that the user would have after a login.
    pub env: BTreeMap<String, String>,
    /// Where to start; without it the user's home.
    pub folder: Option<String>,
    /// A name or a number of the guest's, optionally `:GROUP` after it; without it root.
    pub user: Option<String>,
}

impl Command {
    /// The error of a step, with the word of the caller's that it is about.
    fn failed(&self, error: process::Error, ids: u32) -> Error {
        let or = |word: &Option<String>, other: &str| word.clone().unwrap_or(other.to_owned());
        match error {
            process::Error::Exec { errno, .. } => {
                let program = self.argv.first().map_or("the login shell", String::as_str);
                Error::Command { program: program.to_owned(), errno }
            }
            process::Error::NoUser => Error::User { user: or(&self.user, "root"), ids },
            process::Error::Directory(source) => {
                Error::Folder { folder: or(&self.folder, "/"), source }
            }
            error => error.into(),
        }
    }
}

/// Runs a command in a guest with this process's standard streams; returns how it ended. A terminal of
/// the guest's own stands for those that are terminals. The caller has one thread.
pub fn exec(pool: &Pool, name: &Name, command: &Command) -> Result<Ended> {
    let guest::RunningGuest { cgroup, record: state } =
        guest::running(&guest::Guest::new(pool, name))?;
    let signals =
        holm_sys::signal::Caught::all().map_err(|error| Error::step("catch", "signals", error))?;
    terminal::refuse_folders()
        .map_err(|error| Error::step("pass on", "the standard streams", error))?;
    let terminals = terminal::standard_streams();
    let (child, master) = spawn(&state, &cgroup, command, Streams::Callers(terminals))?;
    converse(&child, master, terminals, &signals)
}

/// What a command's standard streams are.
#[derive(Debug)]
enum Streams {
    /// The caller's, but for those that are terminals.
    Callers(Terminals),
    /// This device. The program is the guest's and nobody asked for a talk with it: it gets nothing of the caller's, whose
    /// terminal and input it could read.
    Null(OwnedFd),
}

/// Runs a command in a guest and waits for its end, whatever it is, at most until `timeout`.
pub(crate) fn quietly(
    state: &RunRecord,
    cgroup: &GuestCgroup,
    argv: &[&str],
    timeout: Duration,
) -> Result<()> {
    let argv = argv.iter().map(|&word| word.to_owned()).collect();
    let command = Command { argv, ..Command::default() };
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| Error::step("open", "/dev/null", errno))?;
    let (child, _) = spawn(state, cgroup, &command, Streams::Null(null))?;
    if !ended_within(&child, timeout)? {
        let _ = pidfd_send_signal(&child, Signal::KILL);
        // A process that waits for a filesystem of the guest's own making cannot even be killed.
        if !ended_within(&child, GRACE)? {
            return Err(Error::step(
                "end the command in",
                "the guest",
                rustix::io::Errno::TIMEDOUT,
            ));
        }
    }
    // Init's own end waits until nothing of its process namespace is left, a zombie of ours included.
    waitid(WaitId::PidFd(child.as_fd()), WaitIdOptions::EXITED)
        .map_err(|errno| Error::step("wait for", "the command", errno))?;
    Ok(())
}

/// How long a killed command may take to end.
const GRACE: Duration = Duration::from_secs(2);

/// How long each step between the clone and the command's program may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a command; returns its process, and the master of its terminal if it was to have one.
fn spawn(
    state: &RunRecord,
    cgroup: &GuestCgroup,
    command: &Command,
    streams: Streams,
) -> Result<(OwnedFd, Option<OwnedFd>)> {
    let gone = || Error::step("find init of", "the guest", rustix::io::Errno::SRCH);
    let init = state.init().ok_or_else(gone)?;
    let (launcher, inside) = channel()?;
    let tasks = cgroup.open_v1_tasks()?;
    let mut joined =
        flags::NEWUSER | flags::NEWUTS | flags::NEWIPC | flags::NEWCGROUP | flags::NEWTIME;
    if net::has_own_namespace(&state.network) {
        joined |= flags::NEWNET;
    }
    let cloned = {
        let _away = PidNamespaceGuard::enter(init.as_fd())?;
        in_leaf(cgroup)?
    };
    let pidfd = match cloned {
        Clone::Parent { pidfd, .. } => pidfd,
        Clone::Child(process) => {
            drop(launcher);
            let plan = child::Plan { state, command, streams, init, joined, tasks };
            child::run(&plan, &process, &inside)
        }
    };
    drop(inside);
    match launcher.follow(&pidfd, Some(PATIENCE)) {
        Ok(console) => Ok((pidfd, console)),
        Err(error @ process::Error::Slow) => {
            // Not waited for: what waits for a filesystem of the guest's may not end until that answers.
            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
            Err(error.into())
        }
        Err(error) => {
            let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
            Err(command.failed(error, state.ids.count))
        }
    }
}

/// Makes a child in the guest's leaf for commands, or in a new one if the guest has spoilt that.
fn in_leaf(cgroup: &GuestCgroup) -> Result<Clone> {
    let leaf = cgroup.leaf_fd()?;
    clone(0, Some(leaf.as_fd()))
        .or_else(|_| {
            let fresh = cgroup.fresh_leaf_fd().map_err(std::io::Error::other)?;
            clone(0, Some(fresh.as_fd()))
        })
        .map_err(|error| Error::step("make a process in", "the guest's control group", error))
}
