//! What is done to files otherwise than by descriptors, for tests of who sees it.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

/// The first bytes of a file, mapped shared (`MAP_SHARED`). Whatever else changes the file may
/// change them at any moment.
#[derive(Debug)]
pub struct SharedMap {
    start: NonNull<u8>,
    bytes: usize,
}

impl SharedMap {
    /// Maps them; `file` is open for writing too if they are to be written.
    pub fn new(file: BorrowedFd<'_>, bytes: usize, writable: bool) -> io::Result<Self> {
        let access = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        let file = file.as_raw_fd();
        // SAFETY: the kernel chooses an address where nothing is.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, file, 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().addr() != usize::MAX => Ok(Self { start, bytes }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Reads a byte, as it is now.
    ///
    /// # Panics
    /// Beyond the end of the mapping.
    #[must_use]
    pub fn get(&self, at: usize) -> u8 {
        assert!(at < self.bytes, "byte {at} of {}", self.bytes);
        // SAFETY: the mapping has this byte; volatile, because others may change it.
        unsafe { self.start.add(at).read_volatile() }
    }

    /// Writes a byte. In a mapping that is not writable this ends the process.
    ///
    /// # Panics
    /// Beyond the end of the mapping.
    pub fn set(&mut self, at: usize, byte: u8) {
        assert!(at < self.bytes, "byte {at} of {}", self.bytes);
        // SAFETY: as for `get`.
        unsafe { self.start.add(at).write_volatile(byte) }
    }

    /// Where it lies in this process.
    #[must_use]
    pub fn address(&self) -> usize {
        self.start.as_ptr().addr()
    }
}

impl Drop for SharedMap {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and nothing points into it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// truncate(2): by name, where `File::set_len` opens the file first.
pub fn truncate(path: &Path, bytes: i64) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a string that ends in a zero byte and outlives the call.
    let result = unsafe { libc::truncate(path.as_ptr(), bytes) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// swapon(2). The file has no swap header, so that it cannot succeed.
pub fn swap_on(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a string that ends in a zero byte and outlives the call.
    let result = unsafe { libc::swapon(path.as_ptr(), 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes a lease on an open file (`F_SETLEASE`): a read lease, or a write lease.
pub fn lease(file: BorrowedFd<'_>, write: bool) -> io::Result<()> {
    let kind = if write { libc::F_WRLCK } else { libc::F_RDLCK };
    // SAFETY: takes numbers only.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether a file can be named by a handle (`name_to_handle_at(2)`): the length of it.
pub fn handle(path: &Path) -> io::Result<usize> {
    const ROOM: u32 = 128;
    let path = CString::new(path.as_os_str().as_bytes())?;
    // The head of `struct file_handle`, two numbers, and room for the handle.
    let mut handle = [0_u32; 2 + ROOM as usize / 4];
    handle[0] = ROOM;
    let mut mount = 0;
    // SAFETY: the kernel writes at most `ROOM` bytes behind the head, and one number to `mount`;
    // both outlive the call, as the string does.
    let result = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            path.as_ptr(),
            handle.as_mut_ptr(),
            &raw mut mount,
            0,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(handle[0] as usize) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_shared_mapping_is_the_file() {
        let path = std::env::temp_dir().join(format!("holm-sys-map-{}", std::process::id()));
        std::fs::write(&path, [7; 10]).expect("a file");
        let file = std::fs::File::options().read(true).write(true).open(&path).expect("it");
        let mut map = SharedMap::new(file.as_fd(), 10, true).expect("a mapping");
        assert_eq!(map.get(3), 7);
        map.set(3, 8);
        assert_eq!(std::fs::read(&path).expect("it")[3], 8);
        drop(map);
        truncate(&path, 4).expect("shorter");
        assert_eq!(std::fs::read(&path).expect("it"), [7, 7, 7, 8]);
        std::fs::remove_file(&path).expect("gone");
    }
}
