//! A client's connection to a monitor.

use super::error::Error;
use holm_proto::client::{INPUT_MAX, MESSAGE_MAX, Message, REQUEST_MAX, Request};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

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

    /// Types `bytes` into the console.
    pub fn type_in(&self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(INPUT_MAX) {
            self.send(Request::Input(piece))?;
        }
        Ok(())
    }

    /// Tells the size of the terminal.
    pub fn resize(&self, rows: u16, columns: u16) -> io::Result<()> {
        self.send(Request::Size { rows, columns })
    }

    fn send(&self, request: Request<'_>) -> io::Result<()> {
        let mut packet = [0; REQUEST_MAX];
        match send(&self.0, request.write(&mut packet), SendFlags::NOSIGNAL) {
            // The next receive reports that the monitor is gone.
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

fn try_connect(path: &Path) -> Result<OwnedFd, Errno> {
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}
