//! System calls that take what the whole machine shares, for tests of who runs out of it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

#[cfg(target_arch = "x86_64")]
use crate::try_syscall::int_0x80;

/// Makes a context for this many asynchronous operations (`io_setup(2)`), which lasts as long as
/// this process.
pub fn aio_context(events: u32) -> io::Result<()> {
    let mut context: libc::c_ulong = 0;
    // SAFETY: the kernel writes one number to `context`, which outlives the call. The ring that it
    // maps into this process is where nothing else is.
    let result = unsafe { libc::syscall(libc::SYS_io_setup, events, &raw mut context) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes a set of this many semaphores (`semget(2)`), which lasts as long as its ipc namespace.
pub fn semaphores(number: i32) -> io::Result<()> {
    // SAFETY: takes and returns numbers only.
    let set = unsafe { libc::semget(libc::IPC_PRIVATE, number, 0o600) };
    if set < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes a segment of shared memory with this many bytes (`shmget(2)`), all of them allocated,
/// which lasts as long as its ipc namespace.
pub fn shared_memory(bytes: usize) -> io::Result<()> {
    // SAFETY: takes and returns numbers only.
    let segment = unsafe { libc::shmget(libc::IPC_PRIVATE, bytes, 0o600) };
    if segment < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel chooses an address where nothing is.
    let start = unsafe { libc::shmat(segment, std::ptr::null(), 0) };
    if start.addr() == usize::MAX {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the segment has this many bytes, and nobody else knows it. Nothing refers to it when
    // it is detached.
    unsafe {
        std::ptr::write_bytes(start.cast::<u8>(), 1, bytes);
        libc::shmdt(start);
    }
    Ok(())
}

/// Maps a huge page of the default size and writes to it, privately or of a memory file. The
/// mapping lasts as long as this process.
pub fn huge_page(file: Option<BorrowedFd<'_>>) -> io::Result<()> {
    const BYTES: usize = 2 << 20;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let (kind, descriptor) = match &file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB, -1),
    };
    // SAFETY: the kernel chooses an address where nothing is.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, access, kind, descriptor, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping has this byte, and nothing else refers to it.
    unsafe { start.cast::<u8>().write(1) };
    Ok(())
}

/// Makes a timer of this process that is never armed (`timer_create(2)`).
pub fn process_timer() -> io::Result<()> {
    let mut timer: libc::c_int = 0;
    let no_event = std::ptr::null::<libc::sigevent>();
    // SAFETY: the kernel writes one number to `timer`, which outlives the call.
    let result = unsafe {
        libc::syscall(libc::SYS_timer_create, libc::CLOCK_MONOTONIC, no_event, &raw mut timer)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes a raw socket of a family and sets one of its options to `request`, by socketcall(2) of
/// i386, as 32-bit programs do.
#[cfg(target_arch = "x86_64")]
pub fn socket_by_socketcall(
    family: u32,
    level: u32,
    option: u32,
    request: [u32; 4],
) -> io::Result<OwnedFd> {
    const SOCKETCALL: u32 = 102;
    const SYS_SOCKET: u32 = 1;
    const SYS_SETSOCKOPT: u32 = 14;
    const SOCK_RAW: u32 = 3;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, where a 32-bit pointer reaches it.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, access, kind, -1, 0) };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let arguments = page.cast::<[u32; 5]>();
    let value = page.wrapping_byte_add(64).cast::<[u32; 4]>();
    let address = page.expose_provenance() as u32;
    // SAFETY: both lie in the mapping, aligned and apart from each other. The kernel only reads
    // them, and the descriptor that it returns belongs to nobody else.
    let socket = unsafe {
        value.write(request);
        arguments.write([family, SOCK_RAW, 0, 0, 0]);
        int_0x80(SOCKETCALL, [SYS_SOCKET, address, 0]).and_then(|socket| {
            let owned = OwnedFd::from_raw_fd(socket);
            arguments.write([socket as u32, level, option, address + 64, 16]);
            int_0x80(SOCKETCALL, [SYS_SETSOCKOPT, address, 0]).map(|_| owned)
        })
    };
    // SAFETY: nothing points there any more.
    unsafe { libc::munmap(page, 4096) };
    socket
}
