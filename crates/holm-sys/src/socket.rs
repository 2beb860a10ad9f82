//! Options of sockets.

use std::io;
use std::mem::size_of;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

/// Of the kernel's `asm-generic/socket.h`.
const SO_PASSRIGHTS: i32 = 83;

/// `SO_NETNS_COOKIE`, of the same.
const SO_NETNS_COOKIE: i32 = 71;

/// What tells the network namespace of a socket from all others since the host has booted.
pub fn netns_cookie(socket: impl AsFd) -> Result<u64, Errno> {
    let (mut cookie, mut length) = (0_u64, size_of::<u64>() as libc::socklen_t);
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the value and its length are live for the call, and the length is that of the value.
    let done = unsafe {
        libc::getsockopt(
            socket,
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if done == 0 {
        Ok(cookie)
    } else {
        Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
    }
}

/// Sends a datagram from a connected socket, with a source address of the caller's choice
/// (`IP_PKTINFO`, ip(7)).
pub fn send_from(socket: impl AsFd, data: &[u8], source: IpAddr) -> io::Result<()> {
    /// Room for one control message of either kind, aligned as such.
    #[repr(C, align(8))]
    struct Control([u8; 64]);
    let mut control = Control([0; 64]);
    let mut part = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
    // SAFETY: all zeros is a message without anything.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    message.msg_control = (&raw mut control).cast();
    let (level, kind, bytes) = match source {
        IpAddr::V4(v4) => {
            // `struct in_pktinfo`: interface, source, destination.
            let bytes = [[0; 4], v4.octets(), [0; 4]].concat();
            (libc::IPPROTO_IP, libc::IP_PKTINFO, bytes)
        }
        IpAddr::V6(v6) => {
            // `struct in6_pktinfo`: source, interface.
            let bytes = [&v6.octets()[..], &[0; 4]].concat();
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, bytes)
        }
    };
    // SAFETY: `control` has room for the header and 20 bytes, which is the larger of both, and
    // everything that the message points to outlives the call.
    let sent = unsafe {
        message.msg_controllen = libc::CMSG_SPACE(bytes.len() as u32) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = level;
        (*header).cmsg_type = kind;
        (*header).cmsg_len = libc::CMSG_LEN(bytes.len() as u32) as _;
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), libc::CMSG_DATA(header), bytes.len());
        libc::sendmsg(socket.as_fd().as_raw_fd(), &raw const message, 0)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Refuses descriptors sent to a Unix socket. Linux has this since 6.16, and returns `ENOPROTOOPT`
/// before.
pub fn take_no_descriptors(socket: impl AsFd) -> Result<(), Errno> {
    let (no, length) = (0_i32, size_of::<i32>() as libc::socklen_t);
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the value is live for the call and of the length given.
    let done = unsafe {
        libc::setsockopt(socket, libc::SOL_SOCKET, SO_PASSRIGHTS, (&raw const no).cast(), length)
    };
    if done == 0 {
        Ok(())
    } else {
        Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
    }
}
