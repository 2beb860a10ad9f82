//! The places where a guest, its monitor and the monitor's clients meet.

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, chownat, mknodat, openat, unlinkat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen as listen_on, socket_with,
};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

/// The name of a monitor's socket in its guest's folder below the run folder.
pub const SOCKET: &str = "monitor.sock";

/// How many clients may wait for the monitor to accept them.
const BACKLOG: i32 = 16;

/// A listening socket `monitor.sock` in `dir`, in place of one that an earlier monitor left.
pub fn listen(dir: &Path) -> io::Result<OwnedFd> {
    let path = dir.join(SOCKET);
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

/// The FIFO that a guest without a terminal writes to: the monitor's reading end, and the guest's end.
///
/// It stands in the guest's own folder, so a new monitor finds it when /run was wiped. The guest's end is open for
/// reading too, which is why it never sees SIGPIPE while no monitor reads. `owner` is the guest's root on the host,
/// who must be able to open /dev/stdout again.
pub fn output_fifo(folder: BorrowedFd<'_>, owner: (u32, u32)) -> io::Result<(OwnedFd, OwnedFd)> {
    const NAME: &str = "output";
    match unlinkat(folder, NAME, AtFlags::empty()) {
        Err(error) if error != Errno::NOENT => return Err(error.into()),
        _ => {}
    }
    mknodat(folder, NAME, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let (uid, gid) = (Uid::from_raw(owner.0), Gid::from_raw(owner.1));
    chownat(folder, NAME, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    let open =
        |flags| openat(folder, NAME, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty());
    let reader = open(OFlags::RDONLY | OFlags::NONBLOCK)?;
    let guest = open(OFlags::RDWR)?;
    Ok((reader, guest))
}
