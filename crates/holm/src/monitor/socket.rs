//! The socket at which clients connect to a monitor.

use holm_proto::path::MONITOR_SOCKET;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen as listen_on, socket_with,
};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// How many clients may wait for the monitor to accept them.
const BACKLOG: i32 = 16;

/// A listening socket `monitor.sock` in `dir`, in place of one that an earlier monitor left.
pub fn listen(dir: &Path) -> io::Result<OwnedFd> {
    let path = dir.join(MONITOR_SOCKET);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    bind(&socket, &SocketAddrUnix::new(&path)?)?;
    listen_on(&socket, BACKLOG)?;
    Ok(socket)
}
