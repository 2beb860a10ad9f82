//! System call filters: classic BPF programs that the kernel runs before each call.

use std::io;

/// One instruction of a classic BPF program, laid out as the kernel's `struct sock_filter`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// What to do: class, size and mode, or class, operation and source.
    pub code: u16,
    /// Instructions to skip when a comparison holds.
    pub jt: u8,
    /// Instructions to skip when it does not.
    pub jf: u8,
    /// The operand.
    pub k: u32,
}

/// Puts the calling thread, and every process it makes from now on, under `program`, for good.
///
/// `no_new_privs` stays as it is, so set-user-id programs keep working; in return the caller needs
/// `CAP_SYS_ADMIN` in its user namespace (EACCES without).
pub fn install(program: &[Instruction]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let prog = libc::sock_fprog { len, filter: program.as_ptr().cast_mut().cast() };
    // SAFETY: `prog` describes `program`, whose elements have sock_filter's layout; the kernel only
    // reads both, and copies what it keeps.
    let r = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            std::ptr::from_ref(&prog),
        )
    };
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const _: () = assert!(size_of::<Instruction>() == size_of::<libc::sock_filter>());
