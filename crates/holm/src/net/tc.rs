//! Parts of messages about qdiscs, classes and filters (`pkt_sched.h`).

use rustix::io::Errno;

use super::error::Error;
use super::netlink::{Refused, number};

/// `struct tcmsg`.
pub fn header(interface: u32, handle: u32, parent: u32) -> [u8; 20] {
    let mut header = [0; 20];
    header[4..8].copy_from_slice(&interface.to_ne_bytes());
    header[8..12].copy_from_slice(&handle.to_ne_bytes());
    header[12..16].copy_from_slice(&parent.to_ne_bytes());
    header
}

/// The interface and the handle in one.
pub fn names(payload: &[u8]) -> Option<(u32, u32)> {
    Some((number(payload.get(4..)?)?, number(payload.get(8..)?)?))
}

/// `struct tc_ratespec` of a rate in bytes in a second, for frames of Ethernet: the kernel then
/// needs no table.
pub fn rate_spec(rate: u64) -> [u8; 12] {
    const ETHERNET: u8 = 1;
    let mut spec = [0; 12];
    spec[1] = ETHERNET;
    spec[8..].copy_from_slice(&u32::try_from(rate).unwrap_or(u32::MAX).to_ne_bytes());
    spec
}

/// How long it takes to send so many bytes at a rate in bytes in a second, in the kernel's ticks of
/// 64 nanoseconds.
pub fn ticks(bytes: u64, rate: u64) -> u32 {
    u32::try_from(bytes * 1_000_000_000 / rate / 64).unwrap_or(u32::MAX)
}

/// What was done, if that was not to remove something that is not there.
pub fn gone(done: Result<(), Refused>) -> Result<(), Error> {
    match done {
        Err(Refused { errno: Errno::NOENT | Errno::NODEV, .. }) => Ok(()),
        done => Ok(done?),
    }
}
