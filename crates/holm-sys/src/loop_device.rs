//! Loop devices (loop(4)) and what an ext4 on one is asked for.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

const LOOP_CTL_GET_FREE: u64 = 0x4c82;
const LOOP_CONFIGURE: u64 = 0x4c0a;
const LOOP_GET_STATUS64: u64 = 0x4c05;
const LOOP_SET_CAPACITY: u64 = 0x4c07;
/// `_IOW('f', 16, __u64)` of fs/ext4/ext4.h.
const EXT4_IOC_RESIZE_FS: u64 = 0x4008_6610;

/// The device goes when its last user does.
const LO_FLAGS_AUTOCLEAR: u32 = 4;
/// The device's blocks are not cached a second time, as pages of the file.
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// `struct loop_info64` of include/uapi/linux/loop.h.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config` of include/uapi/linux/loop.h.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

impl LoopInfo {
    const fn new(flags: u32) -> Self {
        Self {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset: 0,
            size_limit: 0,
            number: 0,
            encrypt_type: 0,
            encrypt_key_size: 0,
            flags,
            file_name: [0; 64],
            crypt_name: [0; 64],
            encrypt_key: [0; 32],
            init: [0; 2],
        }
    }
}

/// The number of a loop device that nobody uses, made if there is none. `control` is
/// /dev/loop-control. Another process may take it before [`bind`] does.
pub fn free_number(control: BorrowedFd<'_>) -> io::Result<u32> {
    // SAFETY: the request takes no argument.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
    u32::try_from(number).map_err(|_| io::Error::last_os_error())
}

/// Binds a free loop device to a file, which it reads and writes without the page cache where that
/// is possible. It is free again when nobody has it open or mounted. `EBUSY` if it is taken.
pub fn bind(device: BorrowedFd<'_>, file: BorrowedFd<'_>) -> io::Result<()> {
    let config = LoopConfig {
        fd: file.as_raw_fd() as u32,
        block_size: 0,
        info: LoopInfo::new(LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO),
        reserved: [0; 8],
    };
    // SAFETY: the request reads a loop_config, which outlives the call.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) })
}

/// Device and inode number of the file that a loop device is bound to. While `device` is open the
/// answer stays true. `ENXIO` if it is bound to none.
pub fn bound_to(device: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    let mut info = LoopInfo::new(0);
    // SAFETY: the request fills a loop_info64, which outlives the call.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as _, &raw mut info) })?;
    Ok((info.device, info.inode))
}

/// Makes a loop device as long as its file is now.
pub fn take_new_length(device: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the request takes no argument.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_CAPACITY as _) })
}

/// Grows the mounted ext4 that `file` is in to this number of its blocks. The kernel demands
/// `CAP_SYS_RESOURCE`.
pub fn grow_ext4(file: BorrowedFd<'_>, blocks: u64) -> io::Result<()> {
    // SAFETY: the request reads a number of 64 bits, which outlives the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), EXT4_IOC_RESIZE_FS as _, &raw const blocks) })
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
