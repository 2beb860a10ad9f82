use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use holm_sys::process::exit_now;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdGetfdFlags, pidfd_getfd};

use super::{Error, Result};
use crate::terminal::is_master;

/// The launcher's end of the talk with the guest's first process, until init runs.
#[derive(Debug)]
pub struct Launcher {
    go: OwnedFd,
    report: OwnedFd,
}

/// The guest's end. It closes at exec, so the launcher reads the end of the file when init runs; the
/// guest reads the end of the file when the launcher dies.
#[derive(Debug)]
pub struct Guest {
    go: OwnedFd,
    report: OwnedFd,
}

/// Both ends; after the clone each process drops the other's.
pub fn channel() -> Result<(Launcher, Guest)> {
    let pipe = || pipe_with(PipeFlags::CLOEXEC);
    let fail = |errno| Error::step("make", "a pipe", errno);
    let (go, tell) = pipe().map_err(fail)?;
    let (hear, report) = pipe().map_err(fail)?;
    Ok((Launcher { go: tell, report: hear }, Guest { go, report }))
}

/// A message of the guest's side: its kind, and a number.
const MESSAGE: usize = 5;

const READY: u8 = b'r';
const CONSOLE: u8 = b'c';
/// Kinds from here on are the step that failed.
const FAILED: u8 = 128;

/// The steps of the guest's side, by number: what could not be done.
const STEPS: [(&str, &str); 15] = [
    ("enter", "the guest's cgroups"),
    ("unshare", "the cgroup namespace"),
    ("take on", "the ids of root"),
    ("unshare", "the mount namespace"),
    ("set", "the host name"),
    ("open", "the guest's console"),
    ("set", "the personality"),
    ("limit", "the capabilities"),
    ("load", "the system call filter"),
    ("run", "init"),
    ("change to", "the working folder"),
    ("find", "the user in the guest's /etc/passwd"),
    ("join", "the guest's namespaces"),
    ("set", "the resource limits"),
    ("make", "the guest's network namespace"),
];

/// A step of the guest's side: an index into [`STEPS`].
#[derive(Debug, Clone, Copy)]
pub enum Step {
    Cgroup,
    CgroupNamespace,
    Ids,
    MountNamespace,
    HostName,
    Console,
    Personality,
    Capabilities,
    Filter,
    Exec,
    Folder,
    User,
    Join,
    Limits,
    Network,
}

impl Guest {
    /// Says that the namespaces are ready.
    pub fn ready(&self) {
        self.send(READY, 0);
    }

    /// Waits until the mounts are; ends the process if they will not be.
    pub fn wait_for_mounts(&self) {
        self.wait();
    }

    /// Offers descriptor `fd` and waits until the launcher has a copy.
    pub fn offer(&self, fd: BorrowedFd<'_>) {
        self.send(CONSOLE, fd.as_raw_fd());
        self.wait();
    }

    /// Tells what failed, and ends the process.
    pub fn fail(&self, step: Step, error: &io::Error) -> ! {
        self.send(FAILED + step as u8, error.raw_os_error().unwrap_or(0));
        exit_now(127)
    }

    /// Ends the process if the launcher is dead, and cannot take it along any more.
    pub fn end_if_alone(&self) {
        let mut fds = [PollFd::new(&self.report, PollFlags::empty())];
        if poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0) {
            exit_now(127);
        }
    }

    /// What the talk needs until it is over.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.go.as_fd(), self.report.as_fd()]
    }

    fn send(&self, kind: u8, number: i32) {
        let mut message = [kind; MESSAGE];
        message[1..].copy_from_slice(&number.to_ne_bytes());
        // A pipe takes so short a message whole; that nobody reads it is noticed by the next wait.
        let _ = retry_on_intr(|| write(&self.report, &message));
    }

    fn wait(&self) {
        let mut word = [0];
        if retry_on_intr(|| read(&self.go, &mut word)) != Ok(1) {
            exit_now(127);
        }
    }
}

impl Launcher {
    /// Waits until the guest's side has its namespaces.
    pub fn wait_ready(&self) -> Result<()> {
        match self.receive()? {
            Some((READY, _)) => Ok(()),
            Some(other) => Err(failure(other)),
            None => Err(Error::Killed),
        }
    }

    /// Lets init run; returns its console's master, if it offers one, when it does.
    pub fn let_go(self, init: &OwnedFd) -> Result<Option<OwnedFd>> {
        if let Err(error) = self.say_go() {
            // It ended while the mounts were made, and may have told why.
            return Err(self.receive()?.map_or(error, failure));
        }
        self.follow(init, None)
    }

    /// Listens until the guest's side has executed its program; returns the master of its console, if
    /// it offers one. For a side that waits for no word to begin: it may be through already. With `patience`
    /// it has so long for each step: in a running guest it may be frozen, or wait for a filesystem of the guest's.
    pub fn follow(self, init: &OwnedFd, patience: Option<Duration>) -> Result<Option<OwnedFd>> {
        let mut console = None;
        loop {
            if let Some(patience) = patience {
                self.expect_word(patience)?;
            }
            let Some(message) = self.receive()? else { break };
            let (CONSOLE, fd) = message else { return Err(failure(message)) };
            let fail = |errno| Error::step("take", "the guest's console", errno);
            let copy = pidfd_getfd(init, fd, PidfdGetfdFlags::empty()).map_err(fail)?;
            if !is_master(copy.as_fd()) {
                return Err(fail(Errno::NOTTY));
            }
            console = Some(copy);
            self.say_go()?;
        }
        Ok(console)
    }

    fn expect_word(&self, patience: Duration) -> Result<()> {
        let patience = Timespec::try_from(patience).ok();
        let mut fds = [PollFd::new(&self.report, PollFlags::IN)];
        match retry_on_intr(|| poll(&mut fds, patience.as_ref())) {
            Ok(0) => Err(Error::Slow),
            Ok(_) => Ok(()),
            Err(errno) => Err(Error::step("hear from", "the guest's process", errno)),
        }
    }

    fn say_go(&self) -> Result<()> {
        match retry_on_intr(|| write(&self.go, b"g")) {
            Ok(_) => Ok(()),
            Err(Errno::PIPE) => Err(Error::Killed),
            Err(errno) => Err(Error::step("let go", "init", errno)),
        }
    }

    fn receive(&self) -> Result<Option<(u8, i32)>> {
        let mut message = [0; MESSAGE];
        let length = retry_on_intr(|| read(&self.report, &mut message))
            .map_err(|errno| Error::step("hear from", "the guest's first process", errno))?;
        let number = [message[1], message[2], message[3], message[4]];
        Ok((length == MESSAGE).then(|| (message[0], i32::from_ne_bytes(number))))
    }
}

fn failure((kind, number): (u8, i32)) -> Error {
    let step = usize::from(kind.wrapping_sub(FAILED));
    let (what, object) = STEPS.get(step).copied().unwrap_or(("understand", "the guest's side"));
    if step == Step::Exec as usize {
        return Error::Exec { errno: number };
    }
    let errno = Errno::from_raw_os_error(number);
    match step {
        _ if step == Step::Join as usize && errno == Errno::PERM => Error::Early,
        _ if step == Step::User as usize => Error::NoUser,
        _ if step == Step::Folder as usize => Error::Folder(errno.into()),
        _ => Error::step(what, object, errno),
    }
}
