//! BPF programs on cgroups, network namespaces and interfaces, by bpf(2).

mod cost;
mod hook;
mod link;
mod map;
mod number;
mod program;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub use cost::{measure_run_time, run_time};
pub use hook::Hook;
pub use link::{Target, count_attached, link, replace};
pub use map::{Map, MapKind};
pub use number::map_of;
pub use program::{Instruction, load, load_for_function, load_with_maps};

/// The part of `union bpf_attr` that `BPF_OBJ_PIN` and `BPF_OBJ_GET` read.
#[repr(C)]
struct Object {
    path: u64,
    fd: u32,
    flags: u32,
}

/// The part of `union bpf_attr` that `BPF_PROG_QUERY` reads and writes: its last field too, for any
/// target, whatever size it is given.
#[repr(C)]
#[derive(Default)]
struct QueryPrograms {
    /// A cgroup's descriptor, or an interface's index.
    target: u32,
    attach_type: u32,
    flags: [u32; 2],
    ids: u64,
    count: u32,
    padding: u32,
    arrays: [u64; 3],
    revision: u64,
}

/// The part of `union bpf_attr` that `BPF_OBJ_GET_INFO_BY_FD` reads and writes.
#[repr(C)]
struct GetInfo {
    fd: u32,
    length: u32,
    info: u64,
}

const OBJ_PIN: i32 = 6;
const OBJ_GET: i32 = 7;
const OBJ_GET_INFO_BY_FD: i32 = 15;
const PROG_QUERY: i32 = 16;

/// Keeps a map or link alive by a file in a bpf filesystem.
pub fn pin(object: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let fd = object.as_raw_fd().cast_unsigned();
    let mut attr = Object { path: path.as_ptr() as u64, fd, flags: 0 };
    // SAFETY: `path` ends with NUL and outlives the call.
    unsafe { bpf(OBJ_PIN, &mut attr) }.map(drop)
}

/// Opens what is pinned at a path.
pub fn open_pinned(path: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut attr = Object { path: path.as_ptr() as u64, fd: 0, flags: 0 };
    // SAFETY: `path` ends with NUL and outlives the call.
    let fd = unsafe { bpf(OBJ_GET, &mut attr) }?;
    // SAFETY: a descriptor that the kernel just made, which nothing else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// What the kernel tells of a map or program: the beginning of its `struct bpf_*_info`.
///
/// # Safety
///
/// `T` must be laid out as that beginning, any bytes must be a value of it, and what its addresses
/// point to must outlive the call and be as large as it says.
unsafe fn get_info<T>(object: BorrowedFd<'_>, info: &mut T) -> io::Result<()> {
    let mut attr = GetInfo {
        fd: object.as_raw_fd().cast_unsigned(),
        length: size_of::<T>() as u32,
        info: std::ptr::from_mut(info) as u64,
    };
    // SAFETY: the kernel reads and writes at most `length` bytes of `info`, which is borrowed for
    // the call; for the addresses in it the caller answers.
    unsafe { bpf(OBJ_GET_INFO_BY_FD, &mut attr) }.map(drop)
}

/// bpf(2).
///
/// # Safety
///
/// `T` must be laid out as the part of `union bpf_attr` that `command` uses, and what its addresses
/// point to must outlive the call and be as large as it says.
unsafe fn bpf<T>(command: i32, attr: &mut T) -> io::Result<i32> {
    // SAFETY: the kernel reads and writes at most `size_of::<T>()` bytes of `attr`, which is
    // borrowed for the call; for the addresses in it the caller answers.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attr), size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}
