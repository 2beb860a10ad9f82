//! BPF programs on cgroups, by bpf(2).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// One instruction, `struct bpf_insn`.
pub type Instruction = [u8; 8];

/// Where the kernel calls a cgroup's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// `bind(2)` of an IPv4 socket, `BPF_CGROUP_INET4_BIND`.
    Bind4,
}

impl Hook {
    /// `enum bpf_prog_type`.
    fn program_type(self) -> u32 {
        const CGROUP_SOCK_ADDR: u32 = 18;
        match self {
            Self::Bind4 => CGROUP_SOCK_ADDR,
        }
    }

    /// `enum bpf_attach_type`.
    fn attach_type(self) -> u32 {
        match self {
            Self::Bind4 => 8,
        }
    }
}

/// The part of `union bpf_attr` that `BPF_PROG_LOAD` reads.
#[repr(C)]
#[derive(Default)]
struct LoadProgram {
    program_type: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log: [u32; 4],
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_type: u32,
}

/// The part of `union bpf_attr` that `BPF_PROG_QUERY` reads and writes.
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

/// Loads a program for a hook, without attaching it.
pub fn load(hook: Hook, instructions: &[Instruction]) -> io::Result<OwnedFd> {
    let license = c"GPL";
    let mut attr = LoadProgram {
        program_type: hook.program_type(),
        count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        license: license.as_ptr() as u64,
        attach_type: hook.attach_type(),
        ..LoadProgram::default()
    };
    // SAFETY: `instructions` and `license` outlive the call, and the kernel only reads `count`
    // instructions and a text that ends with NUL.
    let fd = unsafe { bpf(PROG_LOAD, &mut attr) }?;
    // SAFETY: a descriptor that the kernel just made, which nothing else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// How many programs are attached to a hook of a cgroup; an error where groups take none.
pub fn count_attached(cgroup: BorrowedFd<'_>, hook: Hook) -> io::Result<u32> {
    let mut attr = QueryPrograms {
        cgroup: cgroup.as_raw_fd() as u32,
        attach_type: hook.attach_type(),
        ..QueryPrograms::default()
    };
    // SAFETY: `ids` is null and its room is given as 0, so the kernel writes the count alone.
    unsafe { bpf(PROG_QUERY, &mut attr) }?;
    Ok(attr.count)
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
