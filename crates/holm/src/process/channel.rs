use std::cell::Cell;
use std::io;
use std::iter::successors;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use holm_sys::process::exit_now;
use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    PidfdGetfdFlags, Signal, WaitId, WaitIdOptions, pidfd_getfd, pidfd_send_signal, waitid,
};

use super::identity::{hung_up_within, readable_within};
use super::message::{LENGTH, Message, Step};
use super::{Error, Result};
use crate::terminal::is_master;

/// How long each step of a guest's first process may take. It is milliseconds, unless the host has
/// no memory or time left.
const INIT: Duration = Duration::from_mins(2);

/// The parent's end of the channel to a process that it has cloned.
#[derive(Debug)]
pub struct ParentEnd {
    to_child: OwnedFd,
    from_child: OwnedFd,
    /// The step that failed in the child, and its errno, once that message was read.
    failure: Cell<Option<(Step, i32)>>,
    /// The child has told that it is about to execute its program.
    executing: Cell<bool>,
    /// A read of it has failed: that is no consequence of the child's end.
    unreadable: Cell<bool>,
}

/// The child's end. It closes at exec, so the parent reads the end of the file when the program
/// runs; the child reads the end of the file when the parent dies.
#[derive(Debug)]
pub struct ChildEnd {
    from_parent: OwnedFd,
    to_parent: OwnedFd,
}

/// Both ends; after the clone each process drops the other's.
pub fn channel() -> Result<(ParentEnd, ChildEnd)> {
    let pipe =
        || pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Error::step("make", "a pipe", errno));
    let (from_parent, to_child) = pipe()?;
    let (from_child, to_parent) = pipe()?;
    let parent = ParentEnd {
        to_child,
        from_child,
        failure: Cell::new(None),
        executing: Cell::new(false),
        unreadable: Cell::new(false),
    };
    Ok((parent, ChildEnd { from_parent, to_parent }))
}

impl ChildEnd {
    /// Tells the parent that the namespaces are there.
    pub fn ready(&self) {
        self.send(Message::Ready);
    }

    /// Waits until everything is assembled; ends the process if it will not be.
    pub fn wait_for_release(&self) {
        self.wait_for(Message::Release);
    }

    /// Offers descriptor `fd` as the console's master and waits until the parent has a copy.
    pub fn offer(&self, fd: BorrowedFd<'_>) {
        self.send(Message::Console(fd.as_raw_fd()));
        self.wait_for(Message::ConsoleReceived);
    }

    /// Tells the parent that what follows is the exec.
    pub fn executing(&self) {
        self.send(Message::Executing);
    }

    /// Tells the parent what failed, and ends the process.
    pub fn fail(&self, step: Step, error: &io::Error) -> ! {
        self.send(Message::Failed { step, errno: error.raw_os_error().unwrap_or(0) });
        exit_now(127)
    }

    /// Ends the process if the parent died before the parent-death signal was set.
    pub fn end_if_orphaned(&self) {
        if hung_up_within(&self.to_parent, Duration::ZERO) == Ok(true) {
            exit_now(127);
        }
    }

    /// What the channel needs until it is over.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.from_parent.as_fd(), self.to_parent.as_fd()]
    }

    /// A pipe takes so short a message whole. Without it both sides would wait for each other, so
    /// this process ends if it cannot be sent.
    fn send(&self, message: Message) {
        if retry_on_intr(|| write(&self.to_parent, &message.to_bytes())).is_err() {
            exit_now(127);
        }
    }

    fn wait_for(&self, wanted: Message) {
        if receive(&self.from_parent) != Ok(Some(wanted)) {
            exit_now(127);
        }
    }
}

impl ParentEnd {
    /// Waits until the child has its namespaces.
    pub fn wait_ready(&self) -> Result<()> {
        self.wait_ready_within(INIT)
    }

    fn wait_ready_within(&self, timeout: Duration) -> Result<()> {
        self.wait_for_message(timeout)
            .map_err(|error| stuck(error, "make its namespaces", timeout))?;
        match self.next()? {
            Some(Message::Ready) => Ok(()),
            Some(other) => Err(unexpected(other)),
            None => Err(Error::Killed),
        }
    }

    /// Releases the child; returns its console's master, if it offers one, when it has executed its
    /// program.
    pub fn release(&self, child: &OwnedFd) -> Result<Option<OwnedFd>> {
        self.send(Message::Release)?;
        self.follow(child, INIT).map_err(|error| stuck(error, "execute init", INIT))
    }

    /// Receives messages until the child has executed its program; returns the master of its
    /// console, if it offers one. For a child that waits for no release: it may have executed its
    /// program already. `timeout` is for each message: in a running guest the child may be frozen,
    /// or wait for a filesystem that the guest serves.
    pub fn follow(&self, child: &OwnedFd, timeout: Duration) -> Result<Option<OwnedFd>> {
        let mut console = None;
        loop {
            self.wait_for_message(timeout)?;
            let Some(message) = self.next()? else { break };
            let fd = match message {
                Message::Console(fd) => fd,
                Message::Executing => {
                    self.executing.set(true);
                    continue;
                }
                other => return Err(unexpected(other)),
            };
            let fail = |errno| Error::step("take", "the guest's console", errno);
            let copy = pidfd_getfd(child, fd, PidfdGetfdFlags::empty()).map_err(fail)?;
            if !is_master(copy.as_fd()).map_err(fail)? {
                return Err(fail(Errno::NOTTY));
            }
            console = Some(copy);
            self.send(Message::ConsoleReceived)?;
        }
        Ok(console)
    }

    /// Whether the child came to its exec. Otherwise the end of the channel is its own: somebody
    /// has killed it.
    pub fn came_to_exec(&self) -> bool {
        self.executing.get()
    }

    /// Ends, after `error`, a child that has not executed its program, and returns the reason.
    pub fn abandon<E>(&self, child: &OwnedFd, error: E) -> E
    where
        E: std::error::Error + From<Error> + 'static,
    {
        self.reason_of(child, &error).map_or(error, E::from)
    }

    /// Ends, after `error`, a child that has not executed its program, and returns its own reason
    /// to end, if it had one.
    ///
    /// When the child has failed, so does whatever the parent does with it next. So the child's
    /// reason comes first.
    pub fn reason_of(
        &self,
        child: &OwnedFd,
        error: &(dyn std::error::Error + 'static),
    ) -> Option<Error> {
        // An ending process loses its namespaces a moment before its end of the channel is closed.
        let gone = !self.unreadable.get() && (self.hung_up() || is_no_such_process(error));
        end_child(child);
        // The other end is closed, so this terminates.
        while matches!(self.next(), Ok(Some(_))) {}
        match self.failure.get() {
            Some((step, errno)) => Some(step.failed(errno)),
            None => gone.then_some(Error::Killed),
        }
    }

    /// Whether the child has closed its end: what is still to be read is all.
    fn hung_up(&self) -> bool {
        hung_up_within(&self.from_child, Duration::ZERO) == Ok(true)
    }

    /// Waits until the child has executed its program, or has ended. A child that offers no console
    /// need not wake its parent with a message that can be read later.
    pub fn wait_until_closed(&self, timeout: Duration) -> Result<()> {
        in_time(hung_up_within(&self.from_child, timeout))
    }

    fn wait_for_message(&self, timeout: Duration) -> Result<()> {
        in_time(readable_within(&self.from_child, timeout))
    }

    fn send(&self, message: Message) -> Result<()> {
        match retry_on_intr(|| write(&self.to_child, &message.to_bytes())) {
            Ok(_) => Ok(()),
            Err(Errno::PIPE) => Err(Error::Killed),
            Err(errno) => Err(Error::step("release", "the guest's process", errno)),
        }
    }

    /// The next message; `None` at the end of the channel.
    fn next(&self) -> Result<Option<Message>> {
        let message = receive(&self.from_child).map_err(|errno| {
            self.unreadable.set(true);
            receive_failed(errno)
        })?;
        if let Some(Message::Failed { step, errno }) = message {
            self.failure.set(Some((step, errno)));
        }
        Ok(message)
    }
}

/// Ends a child that waits for a message which will not come.
pub fn end_child(child: &OwnedFd) {
    let _ = pidfd_send_signal(child, Signal::KILL);
    let _ = waitid(WaitId::PidFd(child.as_fd()), WaitIdOptions::EXITED);
}

/// The error for a guest's first process that did not come to its next step in time.
fn stuck(error: Error, step: &'static str, timeout: Duration) -> Error {
    match error {
        Error::Timeout => Error::InitStuck { step, seconds: timeout.as_secs() },
        error => error,
    }
}

/// Whether the kernel's error is ESRCH.
fn is_no_such_process(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut causes = successors(Some(error), |cause| cause.source());
    causes.any(|cause| {
        let errno = cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        errno == Some(Errno::SRCH.raw_os_error())
    })
}

fn in_time(waited: rustix::io::Result<bool>) -> Result<()> {
    match waited {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::Timeout),
        Err(errno) => Err(receive_failed(errno)),
    }
}

fn receive_failed(errno: Errno) -> Error {
    Error::step("receive a message from", "the guest's process", errno)
}

/// The error for a message other than the expected one.
fn unexpected(message: Message) -> Error {
    match message {
        Message::Failed { step, errno } => step.failed(errno),
        _ => receive_failed(Errno::PROTO),
    }
}

/// The next message of a pipe; `None` at its end.
fn receive(pipe: &OwnedFd) -> rustix::io::Result<Option<Message>> {
    let mut bytes = [0; LENGTH];
    match retry_on_intr(|| read(pipe, &mut bytes))? {
        0 => Ok(None),
        length => Message::parse(&bytes[..length]).map(Some).ok_or(Errno::PROTO),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;

    /// The reason that a failure of the parent with `errno` gets, after the child has sent
    /// `messages`.
    fn reason(messages: &[Message], errno: Errno) -> String {
        let (parent, child) = channel().unwrap();
        for message in messages {
            child.send(*message);
        }
        let process =
            Command::new("sleep").arg("1000").stdout(Stdio::from(child.to_parent)).spawn();
        let pidfd = pidfd_open(Pid::from_child(&process.unwrap()), PidfdFlags::empty()).unwrap();
        let error = Error::step("open the pid namespace of", "init", errno);
        parent.abandon(&pidfd, error).to_string()
    }

    #[test]
    fn the_reason_is_that_of_the_side_that_failed_first() {
        let failed = Message::Failed { step: Step::Network, errno: 28 };
        for errno in [Errno::SRCH, Errno::INVAL] {
            let reason = reason(&[Message::Ready, failed], errno);
            assert_eq!(reason, "cannot make the guest's network namespace");
        }
        assert_eq!(reason(&[Message::Ready], Errno::SRCH), Error::Killed.to_string());
        let own = reason(&[Message::Ready], Errno::INVAL);
        assert_eq!(own, "cannot open the pid namespace of init");
    }

    #[test]
    fn a_child_that_has_died_cannot_be_released() {
        let (parent, child) = channel().unwrap();
        drop(child);
        let null = std::fs::File::open("/dev/null").unwrap().into();
        assert!(matches!(parent.release(&null), Err(Error::Killed)));
    }

    #[test]
    fn the_end_of_the_channel_is_the_exec() {
        let (parent, child) = channel().unwrap();
        parent.send(Message::Release).unwrap();
        child.ready();
        child.wait_for_release();
        drop(child);
        parent.wait_ready().unwrap();
        let null = std::fs::File::open("/dev/null").unwrap().into();
        assert!(parent.follow(&null, INIT).unwrap().is_none());
    }

    #[test]
    fn a_child_that_never_gets_ready_is_not_waited_for_without_end() {
        let (parent, _child) = channel().unwrap();
        let stuck = parent.wait_ready_within(Duration::from_millis(1)).unwrap_err();
        assert!(stuck.to_string().contains("did not make its namespaces"), "{stuck}");
    }
}
