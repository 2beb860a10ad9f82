//! Project ids of files and project quota, as ext4 and XFS have them (quotactl(2)).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

const FS_IOC_FSGETXATTR: u64 = 0x801c_581f;
const FS_IOC_FSSETXATTR: u64 = 0x401c_5820;
/// What is made in the directory gets its project id.
const FS_XFLAG_PROJINHERIT: u32 = 0x200;

/// `struct fsxattr` of include/uapi/linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct FsXattr {
    flags: u32,
    extent_size: u32,
    extents: u32,
    project: u32,
    cow_extent_size: u32,
    reserved: [u8; 8],
}

/// The project id of a file, and whether what is made in it gets that too.
pub fn get(file: BorrowedFd<'_>) -> io::Result<(u32, bool)> {
    let attributes = attributes(file)?;
    Ok((attributes.project, attributes.flags & FS_XFLAG_PROJINHERIT != 0))
}

/// Gives a file a project id. What is made in a directory later gets it too if `inherit` is set.
pub fn set(file: BorrowedFd<'_>, project: u32, inherit: bool) -> io::Result<()> {
    let mut attributes = attributes(file)?;
    attributes.project = project;
    attributes.flags &= !FS_XFLAG_PROJINHERIT;
    if inherit {
        attributes.flags |= FS_XFLAG_PROJINHERIT;
    }
    // SAFETY: the request reads an fsxattr, which outlives the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FSSETXATTR as _, &raw const attributes) })
}

fn attributes(file: BorrowedFd<'_>) -> io::Result<FsXattr> {
    let mut attributes = FsXattr::default();
    // SAFETY: the request fills an fsxattr, which outlives the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FSGETXATTR as _, &raw mut attributes) })?;
    Ok(attributes)
}

/// Numbers of `include/uapi/linux/dqblk_xfs.h`, which the kernel's own quota files take too.
const Q_XGETQUOTA: u32 = 0x5803;
const Q_XSETQLIM: u32 = 0x5804;
const Q_XGETQSTATV: u32 = 0x5808;
const PRJQUOTA: u32 = 2;
const FS_QUOTA_PDQ_ENFD: u16 = 0x20;
const FS_PROJ_QUOTA: i8 = 2;
const FS_DQ_LIMITS: u16 = 0xf;
/// In `fs_disk_quota` a block is so many bytes, whatever the filesystem's are.
const BLOCK: u64 = 512;

/// `struct fs_disk_quota`.
#[repr(C)]
#[derive(Default)]
struct DiskQuota {
    version: i8,
    flags: i8,
    field_mask: u16,
    id: u32,
    block_hard: u64,
    block_soft: u64,
    inode_hard: u64,
    inode_soft: u64,
    blocks: u64,
    inodes: u64,
    rest: [u64; 7],
}

/// `struct fs_quota_statv`, of which only the flags are used.
#[repr(C)]
struct QuotaState {
    version: i8,
    pad: u8,
    flags: u16,
    rest: [u8; 252],
}

/// What the files of a project take, and may take. A limit of 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes that they take.
    pub bytes: u64,
    /// How many there are.
    pub inodes: u64,
    /// Bytes that they may take.
    pub most_bytes: u64,
    /// How many there may be.
    pub most_inodes: u64,
}

/// Whether the filesystem that `file` is on enforces limits of projects.
pub fn is_enforced(file: BorrowedFd<'_>) -> io::Result<bool> {
    let mut state = QuotaState { version: 1, pad: 0, flags: 0, rest: [0; 252] };
    quotactl(file, Q_XGETQSTATV, 0, (&raw mut state).cast())?;
    Ok(state.flags & FS_QUOTA_PDQ_ENFD != 0)
}

/// What a project uses on the filesystem that `file` is on.
pub fn usage(file: BorrowedFd<'_>, project: u32) -> io::Result<Usage> {
    let mut quota = DiskQuota::default();
    match quotactl(file, Q_XGETQUOTA, project, (&raw mut quota).cast()) {
        // XFS and the kernel's own files have no entry for a project that has nothing.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(Usage::default()),
        done => done?,
    }
    Ok(Usage {
        bytes: quota.blocks * BLOCK,
        inodes: quota.inodes,
        most_bytes: quota.block_hard * BLOCK,
        most_inodes: quota.inode_hard,
    })
}

/// Sets what a project may use there: bytes and inodes, each 0 for no limit.
pub fn set_limits(file: BorrowedFd<'_>, project: u32, bytes: u64, inodes: u64) -> io::Result<()> {
    let mut quota = DiskQuota {
        version: 1,
        flags: FS_PROJ_QUOTA,
        field_mask: FS_DQ_LIMITS,
        id: project,
        block_hard: bytes.div_ceil(BLOCK),
        inode_hard: inodes,
        ..DiskQuota::default()
    };
    quotactl(file, Q_XSETQLIM, project, (&raw mut quota).cast())
}

fn quotactl(
    file: BorrowedFd<'_>,
    command: u32,
    id: u32,
    data: *mut libc::c_void,
) -> io::Result<()> {
    let command = (command << 8) | PRJQUOTA;
    // SAFETY: `data` points to the structure of the command, which outlives the call.
    let result =
        unsafe { libc::syscall(libc::SYS_quotactl_fd, file.as_raw_fd(), command, id, data) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_as_long_as_the_kernels() {
        assert_eq!(size_of::<FsXattr>(), 28);
        assert_eq!(size_of::<DiskQuota>(), 112);
    }
}
