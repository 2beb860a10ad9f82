//! Copying between the caller's terminal and a pseudo-terminal in a guest.

use super::{Raw, copy_size};
use holm_sys::signal::Caught;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, read, write};
use rustix::process::{Signal, pidfd_send_signal};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

const SIGWINCH: i32 = 28;
const SIGCONT: i32 = 18;

const BUFFER: usize = 64 << 10;
/// How many times the master is read before other events are served.
const READS: usize = 256;

/// One command on a pseudo-terminal.
#[derive(Debug)]
pub struct Relay<'a> {
    /// The pseudo-terminal's master.
    pub master: BorrowedFd<'a>,
    /// The command's pidfd.
    pub command: BorrowedFd<'a>,
    /// The terminal to read keys from; `None` when the command's input is not the pseudo-terminal.
    pub input: Option<BorrowedFd<'a>>,
    /// Where the pseudo-terminal's output goes.
    pub output: BorrowedFd<'a>,
}

/// What changes while the command runs.
struct State {
    /// Input that is still to be written to the master.
    pending: Vec<u8>,
    input_open: bool,
    /// Whether the master can still be read.
    master_open: bool,
}

impl Relay<'_> {
    /// Copies until the command has ended and everything it wrote was read, and restores the
    /// terminal.
    ///
    /// Each of `signals` is passed on to the command, except SIGWINCH, which resizes the
    /// pseudo-terminal.
    pub fn run(&self, signals: &Caught) -> io::Result<()> {
        fcntl_setfl(self.master, fcntl_getfl(self.master)? | OFlags::NONBLOCK)?;
        let raw = match self.input {
            Some(input) => Raw::enter(input)?,
            None => None,
        };
        self.resize();
        let mut state =
            State { pending: Vec::new(), input_open: self.input.is_some(), master_open: true };
        loop {
            let ended = self.poll_once(signals, &mut state)?;
            while let Some(signal) = signals.next() {
                self.handle_signal(signal, raw.as_ref());
            }
            if ended {
                self.drain_master(&mut state)?;
                return Ok(());
            }
        }
    }

    /// Waits for an event and copies what can be copied; returns whether the command has ended.
    fn poll_once(&self, signals: &Caught, state: &mut State) -> io::Result<bool> {
        let out = if state.pending.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        let mut fds =
            vec![PollFd::new(&self.command, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        if state.master_open {
            fds.push(PollFd::new(&self.master, PollFlags::IN | out));
        }
        if let Some(input) = &self.input
            && state.input_open
            && state.pending.is_empty()
        {
            fds.push(PollFd::new(input, PollFlags::IN));
        }
        match poll(&mut fds, None) {
            Err(Errno::INTR) => return Ok(false),
            result => result?,
        };
        let ended = !fds[0].revents().is_empty();
        let has_input = fds.len() > 2 && fds.last().is_some_and(|fd| !fd.revents().is_empty());
        if state.master_open {
            self.drain_master(state)?;
        }
        if has_input && state.input_open && state.pending.is_empty() {
            self.read_input(state);
        }
        self.write_pending(state);
        Ok(ended)
    }

    /// Copies what the command wrote.
    fn drain_master(&self, state: &mut State) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER];
        // More than a pseudo-terminal buffers, but bounded: a child left behind may write for ever.
        for _ in 0..READS {
            match read(self.master, &mut buffer[..]) {
                Ok(0) => state.master_open = false,
                Ok(len) => {
                    write_all(self.output, &buffer[..len])?;
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {}
                // EIO: the last descriptor of the slave is closed.
                Err(_) => state.master_open = false,
            }
            break;
        }
        Ok(())
    }

    fn read_input(&self, state: &mut State) {
        let Some(input) = self.input else { return };
        // Read only if that does not block: another process may have taken the input since the
        // poll.
        if !ready(input) {
            return;
        }
        let mut buffer = [0; 4096];
        match read(input, &mut buffer[..]) {
            Ok(0) => state.input_open = false,
            Ok(len) => state.pending.extend_from_slice(&buffer[..len]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => state.input_open = false,
        }
    }

    fn write_pending(&self, state: &mut State) {
        while !state.pending.is_empty() {
            match write(self.master, &state.pending) {
                Ok(len) => drop(state.pending.drain(..len)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => state.pending.clear(),
            }
        }
    }

    fn handle_signal(&self, signal: i32, raw: Option<&Raw<'_>>) {
        match signal {
            SIGWINCH => self.resize(),
            SIGCONT => {
                // Continued by job control: meanwhile the shell has set its own terminal modes.
                if let Some(raw) = raw {
                    let _ = raw.reapply();
                }
                self.resize();
            }
            signal => {
                if let Some(signal) = Signal::from_named_raw(signal) {
                    let _ = pidfd_send_signal(self.command, signal);
                }
            }
        }
    }

    fn resize(&self) {
        copy_size(self.input.unwrap_or(self.output), self.master);
    }
}

fn ready(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Writes all of `bytes`, also to a non-blocking descriptor.
pub(crate) fn write_all(to: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match write(&to, bytes) {
            Ok(len) => bytes = &bytes[len..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                poll(&mut [PollFd::new(&to, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
