//! A client's connection to a monitor.

use super::{Ended, Error};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// The longest message: its kind and what one read of a console gives.
const MESSAGE_MAX: usize = 1 + 4096;

/// The longest piece of input that one message carries, in bytes.
const INPUT_MAX: usize = 1024;

/// What a monitor says.
#[derive(Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Whether there is a console to type into.
    Hello(bool),
    /// What the guest wrote.
    Output(&'a [u8]),
    /// Init has ended.
    Ended(Ended),
    /// Of a newer monitor.
    Other,
}

impl Message<'_> {
    /// Reads one packet; `None` is one that no monitor sends.
    pub fn parse(packet: &[u8]) -> Option<Message<'_>> {
        match packet {
            [b'h', console, ..] => Some(Message::Hello(*console == 1)),
            [b'o', bytes @ ..] => Some(Message::Output(bytes)),
            [b'x', words @ ..] => {
                Ended::parse(std::str::from_utf8(words).ok()?).map(Message::Ended)
            }
            [] => None,
            _ => Some(Message::Other),
        }
    }
}

/// The packet that types `bytes` into the console.
pub(super) fn input(bytes: &[u8]) -> Vec<u8> {
    [b"i", bytes].concat()
}

/// The packet that tells the terminal's size.
pub(super) fn size(rows: u16, columns: u16) -> Vec<u8> {
    [&b"w"[..], &rows.to_le_bytes(), &columns.to_le_bytes()].concat()
}

/// A connection.
#[derive(Debug)]
pub(super) struct Client(OwnedFd);

impl Client {
    /// Connects to the monitor whose socket is at `path`.
    pub fn connect(guest: &str, path: &Path) -> Result<Client, Error> {
        match try_connect(path) {
            Ok(socket) => Ok(Client(socket)),
            Err(Errno::NOENT | Errno::CONNREFUSED) => {
                Err(Error::NoMonitor { guest: guest.to_owned() })
            }
            Err(error) => Err(Error::system(guest, "cannot connect to its monitor")(error.into())),
        }
    }

    /// Gives the next message to `take`; `None` when the monitor has hung up.
    pub fn receive<T>(&self, take: impl FnOnce(Message<'_>) -> T) -> io::Result<Option<T>> {
        let mut packet = [0; MESSAGE_MAX];
        match recv(&self.0, &mut packet[..], RecvFlags::empty()) {
            Ok((len, _)) => Ok(Message::parse(&packet[..len]).map(take)),
            Err(Errno::CONNRESET) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Types `bytes`.
    pub fn type_in(&self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(INPUT_MAX) {
            self.send(&input(piece))?;
        }
        Ok(())
    }

    /// Tells the size of the terminal.
    pub fn resize(&self, rows: u16, columns: u16) -> io::Result<()> {
        self.send(&size(rows, columns))
    }

    fn send(&self, packet: &[u8]) -> io::Result<()> {
        match send(&self.0, packet, SendFlags::NOSIGNAL) {
            // Whoever is gone says so to the next receive.
            Err(Errno::PIPE | Errno::CONNRESET) | Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether a monitor listens at `path`.
pub fn is_alive(path: &Path) -> bool {
    // A full queue of connections has somebody to take them.
    matches!(try_connect(path), Ok(_) | Err(Errno::AGAIN))
}

fn try_connect(path: &Path) -> Result<OwnedFd, Errno> {
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}
