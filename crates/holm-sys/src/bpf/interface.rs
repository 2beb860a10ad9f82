//! Programs at interfaces that stay there until the interface is removed, and their maps.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::{Hook, Map, PROG_QUERY, QueryPrograms, bpf, get_info};

/// The part of `union bpf_attr` that `BPF_PROG_ATTACH` reads.
#[repr(C)]
#[derive(Default)]
struct AttachProgram {
    interface: u32,
    program: u32,
    attach_type: u32,
    flags: [u32; 3],
    expected_revision: u64,
}

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

const PROG_ATTACH: i32 = 8;
const PROG_GET_FD_BY_ID: i32 = 13;
const MAP_GET_FD_BY_ID: i32 = 14;

/// Attaches a program to an interface of the calling thread's network namespace, behind those that
/// are there.
pub fn attach(program: BorrowedFd<'_>, hook: Hook, interface: u32) -> io::Result<()> {
    let mut attr = AttachProgram {
        interface,
        program: program.as_raw_fd().cast_unsigned(),
        attach_type: hook.attach_type(),
        ..AttachProgram::default()
    };
    // SAFETY: there are no addresses in it.
    unsafe { bpf(PROG_ATTACH, &mut attr) }.map(drop)
}

/// The map of a program with this name at an interface, which uses one; `None` if there is no such
/// program. `ENODEV` without the interface.
pub fn map_of(interface: u32, hook: Hook, name: &str) -> io::Result<Option<Map>> {
    let mut ids = [0u32; 64];
    let mut attr = QueryPrograms {
        target: interface,
        attach_type: hook.attach_type(),
        ids: ids.as_mut_ptr() as u64,
        count: ids.len() as u32,
        ..QueryPrograms::default()
    };
    // SAFETY: the kernel writes at most `count` numbers to `ids`, which outlives the call.
    match unsafe { bpf(PROG_QUERY, &mut attr) } {
        // Nothing was ever attached.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        asked => asked?,
    };
    for id in ids.into_iter().take(attr.count as usize) {
        let program = match program(id) {
            // It was removed since.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        let mut map = 0u32;
        let mut info = ProgramInfo {
            map_count: 1,
            maps: std::ptr::from_mut(&mut map) as u64,
            ..ProgramInfo::default()
        };
        // SAFETY: the kernel writes one number to `map`, which outlives the call, and otherwise
        // numbers and a name.
        unsafe { get_info(program.as_fd(), &mut info) }?;
        let is_named = info.name.split(|byte| *byte == 0).next() == Some(name.as_bytes());
        if is_named && info.map_count == 1 {
            return Map::from_fd(open(MAP_GET_FD_BY_ID, map)?).map(Some);
        }
    }
    Ok(None)
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
