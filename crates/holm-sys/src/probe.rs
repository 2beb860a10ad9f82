//! Questions to the kernel that change nothing.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

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

/// The part of `union bpf_attr` that loading a program reads.
#[repr(C)]
#[derive(Default)]
struct LoadProgram {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log: [u32; 4],
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach_type: u32,
}

/// The part of `union bpf_attr` that asks for a cgroup's programs.
#[repr(C)]
#[derive(Default)]
struct QueryPrograms {
    cgroup: u32,
    attach_type: u32,
    flags: [u32; 2],
    ids: u64,
    count: u32,
    padding: u32,
}

const PROG_LOAD: i32 = 5;
const PROG_QUERY: i32 = 16;
/// `BPF_PROG_TYPE_CGROUP_SOCK_ADDR` and its attach type `BPF_CGROUP_INET4_BIND`.
const SOCK_ADDR: u32 = 18;
const INET4_BIND: u32 = 8;

/// Loads a BPF program that would look at `bind(2)` and lets everything pass. It is attached nowhere.
pub fn load_bind_program() -> io::Result<OwnedFd> {
    // r0 = 1; exit
    const INSTRUCTIONS: [[u8; 8]; 2] = [[0xb7, 0, 0, 0, 1, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    let license = c"GPL";
    let attr = LoadProgram {
        kind: SOCK_ADDR,
        count: 2,
        instructions: INSTRUCTIONS.as_ptr() as u64,
        license: license.as_ptr() as u64,
        expected_attach_type: INET4_BIND,
        ..LoadProgram::default()
    };
    // SAFETY: `attr` and what it points to outlive the call, and the kernel only reads them.
    let fd = unsafe {
        libc::syscall(libc::SYS_bpf, PROG_LOAD, std::ptr::from_ref(&attr), size_of::<LoadProgram>())
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that the kernel just made.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// How many BPF programs look at `bind(2)` in this cgroup; an error where cgroups take none.
pub fn count_bind_programs(cgroup: BorrowedFd<'_>) -> io::Result<u32> {
    let mut attr = QueryPrograms {
        cgroup: cgroup.as_raw_fd() as u32,
        attach_type: INET4_BIND,
        ..QueryPrograms::default()
    };
    // SAFETY: the kernel writes into `attr` only, whose size it is told; with a null `ids` it returns the count alone.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            PROG_QUERY,
            std::ptr::from_mut(&mut attr),
            size_of::<QueryPrograms>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(attr.count) }
}
