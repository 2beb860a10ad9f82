//! How often programs have run, and how long that took.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::{bpf, number};

/// The part of `union bpf_attr` that `BPF_ENABLE_STATS` reads.
#[repr(C)]
struct EnableStats {
    kind: u32,
}

const ENABLE_STATS: i32 = 32;

/// Has the kernel measure the run time of all programs until the descriptor is closed.
pub fn measure_run_time() -> io::Result<OwnedFd> {
    /// `BPF_STATS_RUN_TIME`.
    const RUN_TIME: u32 = 0;
    let mut attr = EnableStats { kind: RUN_TIME };
    // SAFETY: there are no addresses in it.
    let fd = unsafe { bpf(ENABLE_STATS, &mut attr) }?;
    // SAFETY: a descriptor that the kernel just made, which nothing else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// How often the program of a link has run while its run time was measured, and for how many
/// nanoseconds.
pub fn run_time(link: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    let id = field(link, "prog_id:")?;
    let id = u32::try_from(id).map_err(|_| io::ErrorKind::InvalidData)?;
    let program = number::program(id)?;
    Ok((field(program.as_fd(), "run_cnt:")?, field(program.as_fd(), "run_time_ns:")?))
}

/// A number that /proc tells of a descriptor.
fn field(fd: BorrowedFd<'_>, name: &str) -> io::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()))?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.ok_or_else(|| io::ErrorKind::InvalidData.into())
}
