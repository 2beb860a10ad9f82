//! Programs and maps by their numbers.

use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use super::{Map, bpf, get_info};

/// The part of `union bpf_attr` that `BPF_*_GET_FD_BY_ID` reads.
#[repr(C)]
#[derive(Default)]
struct ById {
    id: u32,
    next: u32,
    flags: u32,
}

/// The beginning of `struct bpf_prog_info`.
#[repr(C)]
#[derive(Default)]
struct ProgramInfo {
    before: [u64; 6],
    uid: u32,
    map_count: u32,
    maps: u64,
    name: [u8; 16],
}

const PROG_GET_FD_BY_ID: i32 = 13;
const MAP_GET_FD_BY_ID: i32 = 14;

/// The map of a program, which uses one, by the number of the program; `None` if the program is
/// gone, or uses another number of maps.
pub fn map_of(id: u32) -> io::Result<Option<Map>> {
    let program = match program(id) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut map = 0u32;
    let mut info = ProgramInfo {
        map_count: 1,
        maps: std::ptr::from_mut(&mut map) as u64,
        ..ProgramInfo::default()
    };
    // SAFETY: the kernel writes one number to `map`, which outlives the call, and otherwise numbers
    // and a name.
    unsafe { get_info(program.as_fd(), &mut info) }?;
    if info.map_count != 1 {
        return Ok(None);
    }
    Map::from_fd(open(MAP_GET_FD_BY_ID, map)?).map(Some)
}

/// Opens a program by its id.
pub(super) fn program(id: u32) -> io::Result<OwnedFd> {
    open(PROG_GET_FD_BY_ID, id)
}

fn open(command: i32, id: u32) -> io::Result<OwnedFd> {
    let mut attr = ById { id, ..ById::default() };
    // SAFETY: there are no addresses in it.
    let fd = unsafe { bpf(command, &mut attr) }?;
    // SAFETY: a descriptor that the kernel just made, which nothing else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
