//! Making processes, and moving them between namespaces.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::child::ChildProcess;

/// Namespaces and placement of a new process, as `clone3(2)` takes them.
pub mod flags {
    /// A new user namespace.
    pub const NEWUSER: u64 = libc::CLONE_NEWUSER as u64;
    /// A new pid namespace.
    pub const NEWPID: u64 = libc::CLONE_NEWPID as u64;
    /// A new host name and domain name.
    pub const NEWUTS: u64 = libc::CLONE_NEWUTS as u64;
    /// A new System V IPC and POSIX message queue namespace.
    pub const NEWIPC: u64 = libc::CLONE_NEWIPC as u64;
    /// A new network namespace.
    pub const NEWNET: u64 = libc::CLONE_NEWNET as u64;
    /// A new mount namespace.
    pub const NEWNS: u64 = libc::CLONE_NEWNS as u64;
    /// A new cgroup namespace.
    pub const NEWCGROUP: u64 = libc::CLONE_NEWCGROUP as u64;
    /// A new time namespace for the children to come.
    pub const NEWTIME: u64 = 0x80;
}

/// `CLONE_INTO_CGROUP` of include/uapi/linux/sched.h, which libc has too narrow or not at all.
const INTO_CGROUP: u64 = 0x2_0000_0000;

/// All namespaces that [`flags`] names.
const NAMESPACES: u64 = flags::NEWUSER
    | flags::NEWPID
    | flags::NEWUTS
    | flags::NEWIPC
    | flags::NEWNET
    | flags::NEWNS
    | flags::NEWCGROUP
    | flags::NEWTIME;

/// Which side of a clone this is.
#[derive(Debug)]
pub enum CloneResult {
    /// The new process.
    Child(ChildProcess),
    /// The caller, with the new process's pid and a descriptor of it.
    Parent {
        /// The new process's id, as the caller sees it.
        pid: i32,
        /// Stays this process's even when its id is used again.
        pidfd: OwnedFd,
    },
}

/// Clones the calling process (memory is copied) into new namespaces, and into the cgroup that
/// `cgroup` is the directory of.
///
/// Refused in a process with several threads: only the calling one would exist in the child, and a
/// lock held by another would never be released there. With one thread nobody can start another
/// between the check and the clone.
pub fn clone(namespaces: u64, cgroup: Option<BorrowedFd<'_>>) -> io::Result<CloneResult> {
    clone_with(namespaces, cgroup, 0, libc::SIGCHLD as u64)
}

/// The same for a process whose parent is the caller's parent, which gets the signals of its end
/// and waits for it.
pub fn clone_sibling(namespaces: u64, cgroup: BorrowedFd<'_>) -> io::Result<CloneResult> {
    // Of a sibling the kernel takes no exit signal: it has the caller's.
    clone_with(namespaces, Some(cgroup), libc::CLONE_PARENT as u64, 0)
}

fn clone_with(
    namespaces: u64,
    cgroup: Option<BorrowedFd<'_>>,
    parent: u64,
    exit_signal: u64,
) -> io::Result<CloneResult> {
    only_namespaces(namespaces)?;
    check_single_threaded()?;
    let mut pidfd: libc::c_int = -1;
    // SAFETY: clone_args is plain data for which all zeros is a valid value.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = namespaces | parent | libc::CLONE_PIDFD as u64;
    args.pidfd = ptr::from_mut(&mut pidfd) as u64;
    args.exit_signal = exit_signal;
    if let Some(cgroup) = cgroup {
        args.flags |= INTO_CGROUP;
        args.cgroup = cgroup.as_raw_fd() as u64;
    }
    // SAFETY: without CLONE_VM the child runs on a copy of this memory; `args` outlives the call.
    let pid = unsafe {
        libc::syscall(libc::SYS_clone3, ptr::from_mut(&mut args), size_of::<libc::clone_args>())
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(CloneResult::Child(ChildProcess::new())),
        pid => {
            // SAFETY: the kernel stored a new descriptor, which nobody else owns.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(CloneResult::Parent { pid: i32::try_from(pid).unwrap_or(i32::MAX), pidfd })
        }
    }
}

/// An error if the calling process has several threads, or shares its memory with another.
pub(crate) fn check_single_threaded() -> io::Result<()> {
    // SAFETY: without effect in a process with one thread, refused in others (unshare(2)): a check
    // that takes one short system call, and no /proc.
    if unsafe { libc::unshare(libc::CLONE_THREAD) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(match error.raw_os_error() {
        Some(libc::EINVAL) => io::Error::other("a process with several threads cannot be cloned"),
        _ => error,
    })
}

/// Refuses flags that are not namespaces: with `CLONE_VM`, say, a child would share this memory.
fn only_namespaces(flags: u64) -> io::Result<()> {
    if flags & !NAMESPACES == 0 { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Leaves the namespaces of `namespaces` for new ones (see [`flags`]).
pub fn unshare(namespaces: u64) -> io::Result<()> {
    only_namespaces(namespaces)?;
    // SAFETY: namespaces concern the kernel's view only, no memory of this process.
    check(unsafe { libc::unshare(namespaces as libc::c_int) })
}

/// Joins those namespaces of the process behind `pidfd` that `namespaces` names.
pub fn join(pidfd: BorrowedFd<'_>, namespaces: u64) -> io::Result<()> {
    only_namespaces(namespaces)?;
    // SAFETY: as for unshare.
    check(unsafe { libc::setns(pidfd.as_raw_fd(), namespaces as libc::c_int) })
}

/// A kind of namespace, as `PIDFD_GET_*_NAMESPACE` of include/uapi/linux/pidfd.h number them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Namespace {
    /// Of cgroups.
    Cgroup = 1,
    /// Of System V IPC and POSIX message queues.
    Ipc = 2,
    /// Of mounts.
    Mount = 3,
    /// Of the network.
    Net = 4,
    /// Of process ids.
    Pid = 5,
    /// Of users.
    User = 9,
}

/// A descriptor of a namespace of the process behind `pidfd` (Linux 6.11).
pub fn namespace(pidfd: BorrowedFd<'_>, kind: Namespace) -> io::Result<OwnedFd> {
    let request = (0xff00 | u64::from(kind as u32)) as _; // _IO(0xFF, number)
    // SAFETY: these requests take no argument and return a new descriptor.
    let fd = unsafe { libc::ioctl(pidfd.as_raw_fd(), request, 0) };
    check(fd)?;
    // SAFETY: a descriptor that the kernel just made.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets the uid and gid that file accesses are judged and new files are owned by.
pub fn set_fs_ids(uid: u32, gid: u32) {
    // SAFETY: changes credentials of the calling thread only. Neither call can fail for root, and
    // neither reports failure (setfsuid(2)).
    unsafe {
        libc::setfsgid(gid);
        libc::setfsuid(uid);
    }
}

/// Schedules this process, and its future children, like any other: `SCHED_OTHER`, and an I/O
/// priority that follows the nice value. Where that is refused, things stay as they are.
pub fn ordinary_scheduling() {
    // SAFETY: `sched_param` is plain data for which zero is valid, read during the call; the other
    // call takes numbers.
    unsafe {
        let param: libc::sched_param = std::mem::zeroed();
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_OTHER, &raw const param);
        libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, 0);
    }
}

/// Does the same if this process has real-time priority, on CPUs or on disks (`chrt -f`,
/// `ionice -c 1`).
pub fn leave_real_time() {
    // SAFETY: both calls take numbers only and ask for this process's own.
    let (policy, io) = unsafe {
        (
            libc::syscall(libc::SYS_sched_getscheduler, 0),
            libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0),
        )
    };
    let ordinary = [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE].map(i64::from);
    if !ordinary.contains(&(policy & !i64::from(libc::SCHED_RESET_ON_FORK)))
        || io >> IOPRIO_CLASS_SHIFT == IOPRIO_CLASS_RT
    {
        ordinary_scheduling();
    }
}

/// Of include/uapi/linux/ioprio.h.
const IOPRIO_WHO_PROCESS: i32 = 1;
const IOPRIO_CLASS_SHIFT: u32 = 13;
const IOPRIO_CLASS_RT: i64 = 1;

/// `PER_LINUX32` of include/uapi/linux/personality.h.
const PER_LINUX32: libc::c_ulong = 0x0008;

/// Says that this process's programs are 32-bit ones (`uname -m` prints i686).
pub fn personality_32_bit() -> io::Result<()> {
    // SAFETY: changes what uname and the address layout of later programs are.
    check(unsafe { libc::personality(PER_LINUX32) })
}

/// Replaces the program by the file at `path` of the directory `dir` (or by `dir` itself, if `path`
/// is empty). Returns only if that fails.
pub fn exec(dir: BorrowedFd<'_>, path: &CStr, argv: &[&CStr], env: &[&CStr]) -> io::Error {
    let pointers = |list: &[&CStr]| -> Vec<*const libc::c_char> {
        list.iter().map(|argument| argument.as_ptr()).chain([ptr::null()]).collect()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    let flags = if path.is_empty() { libc::AT_EMPTY_PATH } else { 0 };
    // SAFETY: both arrays end in a null pointer and, as the strings, live through the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            dir.as_fd().as_raw_fd(),
            path.as_ptr(),
            argv.as_ptr(),
            env.as_ptr(),
            flags,
        );
    }
    io::Error::last_os_error()
}

/// Ends the process at once: no destructors, no buffers flushed. For children of [`clone()`].
pub fn exit_now(status: i32) -> ! {
    // SAFETY: ends the process; nothing of it remains to be unsound.
    unsafe { libc::_exit(status) }
}

/// Gives every signal its default action back and unblocks all: what a new program expects,
/// whatever its caller ignored (Rust's runtime ignores SIGPIPE, nohup SIGHUP).
pub fn reset_signals() {
    // SAFETY: no handler of this process is replaced by another function, only by the default; the
    // set is initialised by sigemptyset before it is read.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = std::mem::MaybeUninit::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_threads_is_not_cloned() {
        // The thread of this test is one, that of the test harness another.
        let other = std::thread::spawn(std::thread::park);
        assert!(clone(0, None).is_err());
        other.thread().unpark();
        other.join().unwrap();
    }

    #[test]
    fn flags_that_are_not_namespaces_are_refused() {
        let kind = |result: io::Result<()>| result.unwrap_err().kind();
        let shared_memory = libc::CLONE_VM as u64;
        assert_eq!(kind(clone(shared_memory, None).map(drop)), io::ErrorKind::InvalidInput);
        assert_eq!(kind(unshare(shared_memory)), io::ErrorKind::InvalidInput);
    }
}
