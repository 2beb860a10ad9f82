//! Questions to the kernel that change nothing.

use std::os::fd::{AsRawFd, BorrowedFd};

/// `struct pidfd_info` of include/uapi/linux/pidfd.h, in its first version.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

/// `PIDFD_GET_INFO`: `_IOWR(0xFF, 11, struct pidfd_info)`.
#[allow(clippy::cast_lossless)] // libc's type for a request is narrower with musl.
const GET_INFO: libc::Ioctl = 0xc040_ff0b_u32 as libc::Ioctl;
/// `PIDFD_INFO_EXIT`.
const INFO_EXIT: u64 = 1 << 3;

/// Whether a descriptor of an ended and reaped process still tells its exit status (Linux 6.15).
pub fn tells_exit_status(pidfd: BorrowedFd<'_>) -> bool {
    let mut info = PidfdInfo { mask: INFO_EXIT, ..PidfdInfo::default() };
    // SAFETY: the kernel writes at most the 64 bytes that the request's number speaks of.
    let result = unsafe { libc::ioctl(pidfd.as_raw_fd(), GET_INFO, std::ptr::from_mut(&mut info)) };
    result == 0 && info.mask & INFO_EXIT != 0
}
