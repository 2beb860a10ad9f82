//! A packet socket by which requests for an address are answered, and which may receive them: DHCP
//! of both versions and IPv6 router solicitations, and nothing else.

use std::mem::{size_of, size_of_val};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

/// Classic BPF over an Ethernet frame: 0 drops it, anything else keeps that many bytes.
const FILTER: [libc::sock_filter; 19] = {
    const LOAD_HALF: u16 = 0x28; // ldh [k]
    const LOAD_BYTE: u16 = 0x30; // ldb [k]
    const LOAD_HEADER_LENGTH: u16 = 0xb1; // ldxb 4*([k]&0xf)
    const LOAD_HALF_INDEXED: u16 = 0x48; // ldh [x + k]
    const JUMP_EQUAL: u16 = 0x15;
    const JUMP_BITS: u16 = 0x45;
    const RETURN: u16 = 0x06;
    const fn op(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
        libc::sock_filter { code, jt, jf, k }
    }
    [
        op(LOAD_HALF, 12, 0, 0),
        op(JUMP_EQUAL, 0x0800, 0, 7), // IPv4, else to IPv6
        op(LOAD_BYTE, 23, 0, 0),
        op(JUMP_EQUAL, 17, 0, 13), // UDP
        op(LOAD_HALF, 20, 0, 0),
        op(JUMP_BITS, 0x1fff, 11, 0), // a later fragment has no ports
        op(LOAD_HEADER_LENGTH, 14, 0, 0),
        op(LOAD_HALF_INDEXED, 16, 0, 0),
        op(JUMP_EQUAL, 67, 9, 8),     // DHCP server
        op(JUMP_EQUAL, 0x86dd, 0, 7), // IPv6
        op(LOAD_BYTE, 20, 0, 0),
        op(JUMP_EQUAL, 58, 0, 2), // ICMPv6, else to UDP
        op(LOAD_BYTE, 54, 0, 0),
        op(JUMP_EQUAL, 133, 4, 3), // router solicitation
        op(JUMP_EQUAL, 17, 0, 2),  // UDP
        op(LOAD_HALF, 56, 0, 0),
        op(JUMP_EQUAL, 547, 1, 0), // DHCPv6 server
        op(RETURN, 0, 0, 0),
        op(RETURN, 2048, 0, 0),
    ]
};

/// Opens a packet socket on an interface (by index) of the current network namespace. Frames are
/// read and written whole, with their Ethernet header; reading does not block. One that `receives`
/// takes time of each packet that comes in there, whatever it is.
pub fn open(interface: u32, receives: bool) -> Result<OwnedFd, Errno> {
    // Protocol 0: nothing is received until it is bound to another, so nothing arrives before the
    // filter is set.
    // SAFETY: plain system call without pointers.
    let raw = check(unsafe {
        libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0)
    })?;
    // SAFETY: the kernel just returned this descriptor and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(raw) };
    let program = libc::sock_fprog { len: 19, filter: FILTER.as_ptr().cast_mut() };
    option(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
    option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1i32)?;
    // SAFETY: all zeroes is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = 17; // AF_PACKET
    address.sll_protocol = if receives { 3u16.to_be() } else { 0 }; // ETH_P_ALL
    address.sll_ifindex = interface.cast_signed();
    let length =
        libc::socklen_t::try_from(size_of::<libc::sockaddr_ll>()).map_err(|_| Errno::INVAL)?;
    // SAFETY: address is a live sockaddr_ll of the length given.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(socket)
}

fn option<T>(socket: &OwnedFd, level: i32, name: i32, value: &T) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(size_of_val(value)).map_err(|_| Errno::INVAL)?;
    // SAFETY: value is live for the call and of the length given.
    check(unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), length)
    })
    .map(drop)
}

fn check(result: i32) -> Result<i32, Errno> {
    if result >= 0 {
        Ok(result)
    } else {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
    }
}
