//! Making, replacing and ending processes.

use super::Args;
use core::ffi::{CStr, c_char, c_void};
use core::mem::size_of;
use core::ptr::{null, with_exposed_provenance_mut};
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;

/// The longest command line that can be run, closing null included.
const ARGV_MAX: usize = 256;

fn errno() -> Errno {
    // SAFETY: the address of this thread's errno is always valid.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}

/// Ends the program at once.
pub fn exit(status: i32) -> ! {
    // SAFETY: `_exit` only ends the process.
    unsafe { libc::_exit(status) }
}

/// Ends the program as by a fault, for a panic.
pub fn abort() -> ! {
    // SAFETY: `abort` only ends the process.
    unsafe { libc::abort() }
}

/// What a child that has executed nothing yet may use of the stack, and the page below, which ends
/// one that uses more.
const CHILD_STACK: usize = 16 << 10;
const GUARD: usize = 4 << 10;

/// Starts a child that runs `child` and ends with its result; returns the child's pid, once it has
/// executed something or ended.
///
/// Until then the child shares this program's memory, as with vfork, on a stack of its own. So it
/// may take along only what can be shared and copied: it owns no descriptor of its parent's and
/// changes nothing of its parent's.
pub fn spawn<F: FnOnce() -> i32 + Copy + Send>(child: F) -> Result<i32, Errno> {
    extern "C" fn run<F: FnOnce() -> i32>(child: *mut c_void) -> i32 {
        // SAFETY: `spawn` passes a closure that it keeps until this child is done, and that can be
        // copied.
        let child = unsafe { child.cast::<F>().read() };
        exit(child())
    }
    let mut child = child;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, which the child has to itself, from the upper end on. The parent
    // is suspended until the child has executed or ended, so `child` and the mapping outlive their
    // use; descriptors and signal actions are copies.
    let pid = unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // By number: musl's function is larger, and brings more with it.
        let stack = libc::syscall(libc::SYS_mmap, 0, GUARD + CHILD_STACK, access, kind, -1, 0);
        if stack < 0 {
            return Err(errno());
        }
        libc::syscall(libc::SYS_mprotect, stack, GUARD, libc::PROT_NONE);
        let top = with_exposed_provenance_mut::<c_void>(stack as usize + GUARD + CHILD_STACK);
        let pid = libc::clone(run::<F>, top, flags, (&raw mut child).cast());
        let error = errno();
        // Unmapped, because an init would keep these pages for as long as the guest runs.
        libc::syscall(libc::SYS_munmap, stack, GUARD + CHILD_STACK);
        if pid < 0 {
            return Err(error);
        }
        pid
    };
    Ok(pid)
}

/// Replaces the program by the one at `path` with the present environment; returns only when that
/// fails.
pub fn exec(path: &CStr, args: &[&CStr]) -> Errno {
    let mut pointers = [null::<c_char>(); ARGV_MAX];
    if args.len() >= ARGV_MAX {
        return Errno::TOOBIG;
    }
    for (slot, arg) in pointers.iter_mut().zip(args) {
        *slot = arg.as_ptr();
    }
    // SAFETY: path and arguments are C strings, the array ends in a null.
    unsafe { libc::execv(path.as_ptr(), pointers.as_ptr()) };
    errno()
}

/// Replaces the program by the one that `args` names, looked up in `PATH`; returns only when that
/// fails.
pub fn exec_argv(args: Args) -> Errno {
    let mut pointers = [null::<c_char>(); ARGV_MAX];
    if args.is_empty() || args.len() >= ARGV_MAX {
        return Errno::TOOBIG;
    }
    for (slot, arg) in pointers.iter_mut().zip(args.pointers()) {
        *slot = arg;
    }
    // SAFETY: the arguments are C strings, the array ends in a null.
    unsafe { libc::execvp(pointers[0], pointers.as_ptr()) };
    errno()
}

/// Sends `signal` to a process, to a group (below -1) or to all (-1); who is gone already needs no
/// signal.
pub fn kill(pid: i32, signal: i32) {
    // SAFETY: kill touches no memory.
    unsafe { libc::kill(pid, signal) };
}

/// Takes the status of a child that has ended: `None` when none has, an error when there is no
/// child.
pub fn reap() -> Result<Option<(i32, Status)>, Errno> {
    let mut status = 0;
    // SAFETY: the kernel writes one integer.
    match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
        0 => Ok(None),
        ..0 => Err(errno()),
        pid => Ok(Some((pid, Status::from_wait(status)))),
    }
}

/// The monotonic clock in milliseconds.
pub fn milliseconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// Seconds since 1970. Without the vDSO, whose reader would be as long as the rest of a monitor's
/// code for flows.
pub fn seconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_REALTIME, &raw mut time) };
    time.tv_sec as u64
}

/// Sets the name that `ps` shows for this process (15 bytes of it).
pub fn set_comm(name: &CStr) {
    // SAFETY: the kernel copies at most 16 bytes of a C string.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

impl Status {
    /// Decodes what wait(2) gives.
    pub fn from_wait(status: i32) -> Status {
        match status & 0x7f {
            0 => Status::Exited((status >> 8) & 0xff),
            signal => Status::Killed(signal),
        }
    }
}

/// `struct pidfd_info` as of its first version.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    pid_tgid_ppid: [u32; 3],
    ids: [u32; 8],
    exit_code: i32,
}
const _: () = assert!(size_of::<PidfdInfo>() == 64);
/// `_IOWR(0xff, 11, struct pidfd_info)`
const PIDFD_GET_INFO: i64 = 0xc040_ff0b;
const PIDFD_INFO_EXIT: u64 = 1 << 3;

/// How the process of `pidfd` ended, also for one who is not its parent: `None` before it was
/// reaped, and on kernels older than 6.15.
pub fn exit_status_of(pidfd: BorrowedFd<'_>) -> Option<Status> {
    let mut info = PidfdInfo { mask: PIDFD_INFO_EXIT, ..PidfdInfo::default() };
    // SAFETY: the request carries the size of the structure, and the kernel writes no more than
    // that.
    let rc =
        unsafe { libc::syscall(libc::SYS_ioctl, pidfd.as_raw_fd(), PIDFD_GET_INFO, &raw mut info) };
    (rc == 0 && info.mask & PIDFD_INFO_EXIT != 0).then(|| Status::from_wait(info.exit_code))
}
