//! Attaching programs.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::{Hook, PROG_QUERY, QueryPrograms, bpf};

/// What a program is attached to.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// A cgroup of v2, or a network namespace.
    Directory(BorrowedFd<'a>),
    /// An interface of the calling thread's network namespace, by index.
    Interface(u32),
}

/// The part of `union bpf_attr` that `BPF_LINK_CREATE` reads.
#[repr(C)]
#[derive(Default)]
struct CreateLink {
    program: u32,
    target: u32,
    attach_type: u32,
    flags: u32,
    details: [u64; 6],
}

const LINK_CREATE: i32 = 28;
const LINK_UPDATE: i32 = 29;

/// Attaches a program, until the link is closed and no longer pinned.
pub fn link(program: BorrowedFd<'_>, hook: Hook, target: Target<'_>) -> io::Result<OwnedFd> {
    let mut attr = CreateLink {
        program: program.as_raw_fd().cast_unsigned(),
        target: match target {
            Target::Directory(fd) => fd.as_raw_fd().cast_unsigned(),
            Target::Interface(index) => index,
        },
        attach_type: hook.attach_type(),
        ..CreateLink::default()
    };
    // SAFETY: there are no addresses in it.
    let fd = unsafe { bpf(LINK_CREATE, &mut attr) }?;
    // SAFETY: a descriptor that the kernel just made, which nothing else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The part of `union bpf_attr` that `BPF_LINK_UPDATE` reads.
#[repr(C)]
struct UpdateLink {
    link: u32,
    program: u32,
    flags: u32,
    old_program: u32,
}

/// Has a link run another program, of the same kind, from now on.
pub fn replace(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let (link, program) = (link.as_raw_fd().cast_unsigned(), program.as_raw_fd().cast_unsigned());
    let mut attr = UpdateLink { link, program, flags: 0, old_program: 0 };
    // SAFETY: there are no addresses in it.
    unsafe { bpf(LINK_UPDATE, &mut attr) }.map(drop)
}

/// How many programs are attached to a hook of a cgroup; an error where groups take none.
pub fn count_attached(cgroup: BorrowedFd<'_>, hook: Hook) -> io::Result<u32> {
    let mut attr = QueryPrograms {
        target: cgroup.as_raw_fd().cast_unsigned(),
        attach_type: hook.attach_type(),
        ..QueryPrograms::default()
    };
    // SAFETY: `ids` is null and its room is given as 0, so the kernel writes the count alone.
    unsafe { bpf(PROG_QUERY, &mut attr) }?;
    Ok(attr.count)
}
