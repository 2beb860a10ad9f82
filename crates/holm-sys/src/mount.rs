//! Attributes of mounts.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Attributes of a mount, as `mount_setattr(2)` takes them.
pub mod attr {
    /// Nothing below can be written.
    pub const RDONLY: u64 = 0x1;
    /// Set-user-id bits and file capabilities are ignored.
    pub const NOSUID: u64 = 0x2;
    /// Device nodes cannot be opened.
    pub const NODEV: u64 = 0x4;
    /// Programs cannot be run.
    pub const NOEXEC: u64 = 0x8;
}

/// `MOUNT_ATTR_IDMAP` of include/uapi/linux/mount.h.
const IDMAP: u64 = 0x10_0000;

/// `struct mount_attr` of include/uapi/linux/mount.h.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Sets and clears attributes of the one mount that `mount` is a descriptor of.
pub fn set_attributes(mount: BorrowedFd<'_>, set: u64, clear: u64) -> io::Result<()> {
    let attr = MountAttr { set, clear, propagation: 0, user_namespace: 0 };
    set_attr(mount.as_raw_fd(), c"", libc::AT_EMPTY_PATH, &attr)
}

/// Makes owners on a not yet attached mount appear as the user namespace maps them.
pub fn make_idmapped(mount: BorrowedFd<'_>, user_namespace: BorrowedFd<'_>) -> io::Result<()> {
    let user_namespace = user_namespace.as_raw_fd() as u64;
    let attr = MountAttr { set: IDMAP, clear: 0, propagation: 0, user_namespace };
    set_attr(mount.as_raw_fd(), c"", libc::AT_EMPTY_PATH, &attr)
}

/// Stops mounts and unmounts of the calling process's mount namespace from reaching any other.
pub fn make_all_private() -> io::Result<()> {
    let attr = MountAttr { set: 0, clear: 0, propagation: libc::MS_PRIVATE, user_namespace: 0 };
    set_attr(libc::AT_FDCWD, c"/", libc::AT_RECURSIVE, &attr)
}

fn set_attr(fd: i32, path: &std::ffi::CStr, flags: i32, attr: &MountAttr) -> io::Result<()> {
    // SAFETY: `path` ends in NUL, `attr` is of the size given, and both outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd,
            path.as_ptr(),
            flags,
            std::ptr::from_ref(attr),
            size_of::<MountAttr>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
