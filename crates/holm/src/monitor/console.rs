//! Showing a guest's console, and typing into it.

use super::client::Client;
use super::error::Error;
use crate::terminal::{GuestOutput, Raw};
use holm_proto::Ended;
use holm_proto::client::Message;
use holm_sys::signal::Caught;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read};
use rustix::termios::tcgetwinsize;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

const SIGWINCH: i32 = 28;
const SIGCONT: i32 = 18;
/// SIGHUP, SIGINT, SIGQUIT, SIGTERM: the client detaches and restores the terminal.
const DETACH_SIGNALS: [i32; 4] = [1, 2, 3, 15];

/// A request to show a console.
#[derive(Debug)]
pub struct Console<'a> {
    /// The guest's name.
    pub guest: &'a str,
    /// Its monitor's socket.
    pub socket: &'a Path,
    /// Where input is read; without it only output is shown.
    pub input: Option<BorrowedFd<'a>>,
    /// Where the guest's output goes: unfiltered if there is input.
    pub output: BorrowedFd<'a>,
}

/// Why [`Console::run`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsoleEnd {
    /// The user has detached: by the escape keys, the end of the input, or a signal.
    Detached,
    /// The guest's init ended.
    Ended(Ended),
    /// The monitor closed the connection: the reader was too slow, or the monitor was killed.
    Dropped,
    /// The monitor serves [`CLIENTS_MAX`](holm_proto::client::CLIENTS_MAX) others already.
    Refused,
}

impl Console<'_> {
    /// Shows the console until the user detaches or the guest ends, and restores the terminal.
    ///
    /// On a terminal `Ctrl-] q` detaches, and `Ctrl-] Ctrl-]` types one `Ctrl-]`.
    pub fn run(&self) -> Result<ConsoleEnd, Error> {
        let client = Client::connect(self.guest, self.socket)?;
        self.show(&client).map_err(Error::system(self.guest, "cannot go on showing its console"))
    }

    fn show(&self, client: &Client) -> io::Result<ConsoleEnd> {
        let signals = Caught::all()?;
        let raw = match self.input {
            Some(input) => Raw::enter(input)?,
            None => None,
        };
        let mut keys = Keys::new(raw.is_some());
        let mut output = match self.input {
            Some(_) => GuestOutput::raw(self.output),
            None => GuestOutput::new(self.output),
        };
        self.resize(client)?;
        // A monitor greets each client that it has room for.
        let mut greeted = false;
        let end = loop {
            let mut fds =
                vec![PollFd::new(client, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
            fds.extend(self.input.as_ref().map(|input| PollFd::new(input, PollFlags::IN)));
            match poll(&mut fds, None) {
                Err(Errno::INTR) => continue,
                result => result?,
            };
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            if ready[0]
                && let Some(end) = receive(client, &mut output, &mut greeted)?
            {
                break end;
            }
            let mut detach = false;
            while let Some(signal) = signals.next() {
                detach |= DETACH_SIGNALS.contains(&signal);
                if let (SIGCONT, Some(raw)) = (signal, &raw) {
                    raw.reapply()?;
                }
                if matches!(signal, SIGWINCH | SIGCONT) {
                    self.resize(client)?;
                }
            }
            if detach || ready.get(2) == Some(&true) && !self.send(client, &mut keys)? {
                break ConsoleEnd::Detached;
            }
        };
        output.finish()?;
        Ok(end)
    }

    /// Sends what was typed; returns false if the user detaches.
    fn send(&self, client: &Client, keys: &mut Keys) -> io::Result<bool> {
        let Some(input) = self.input else { return Ok(true) };
        let mut buffer = [0; 4096];
        let len = match read(input, &mut buffer[..]) {
            Ok(0) => return Ok(false),
            Ok(len) => len,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        let (typed, leave) = keys.take(&buffer[..len]);
        client.type_in(&typed)?;
        Ok(!leave)
    }

    fn resize(&self, client: &Client) -> io::Result<()> {
        match self.input.map(tcgetwinsize) {
            Some(Ok(size)) => client.resize(size.ws_row, size.ws_col),
            _ => Ok(()),
        }
    }
}

fn receive(
    client: &Client,
    output: &mut GuestOutput<'_>,
    greeted: &mut bool,
) -> io::Result<Option<ConsoleEnd>> {
    let taken = client.receive(|message| {
        *greeted = true;
        match message {
            Message::Output(bytes) => output.write(bytes).map(|()| None),
            Message::Ended(ended) => Ok(Some(ConsoleEnd::Ended(ended))),
            Message::Hello(_) | Message::Other => Ok(None),
        }
    })?;
    let closed = if *greeted { ConsoleEnd::Dropped } else { ConsoleEnd::Refused };
    taken.unwrap_or(Ok(Some(closed)))
}

/// `Ctrl-]`
const ESCAPE: u8 = 0x1d;

/// Finds the keys that detach.
pub(super) struct Keys {
    terminal: bool,
    escaped: bool,
}

impl Keys {
    /// Input that is not from a `terminal` is passed on as it is.
    pub fn new(terminal: bool) -> Keys {
        Keys { terminal, escaped: false }
    }

    /// What to send of `bytes`, and whether the user then detaches.
    pub fn take(&mut self, bytes: &[u8]) -> (Vec<u8>, bool) {
        if !self.terminal {
            return (bytes.to_vec(), false);
        }
        let mut typed = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            match (self.escaped, byte) {
                (false, ESCAPE) => self.escaped = true,
                (true, b'q' | b'Q') => return (typed, true),
                (true, ESCAPE) => {
                    self.escaped = false;
                    typed.push(ESCAPE);
                }
                (true, _) => {
                    self.escaped = false;
                    typed.extend([ESCAPE, byte]);
                }
                (false, _) => typed.push(byte),
            }
        }
        (typed, false)
    }
}
