//! The program of monitors and minimal inits.

use rustix::fs::{
    MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create, openat,
};
use rustix::io::read;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

/// The program `holm-init`: static, the same bytes for both its roles.
pub const IMAGE: &[u8] = include_bytes!(env!("HOLM_INIT_IMAGE"));

const SEALS: SealFlags =
    SealFlags::SEAL.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::WRITE);

/// The program in a sealed memfd: that of another guest's monitor, so that all share its pages,
/// else a new one. `guest` is a guest's cgroup, next to which is that of the monitors.
pub fn seal(guest: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    match shared(guest) {
        Some(image) => Ok(image),
        None => fresh(),
    }
}

fn fresh() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::EXEC;
    let mut file = File::from(memfd_create("holm-init", flags)?);
    file.write_all(IMAGE)?;
    fcntl_add_seals(&file, SEALS)?;
    Ok(file.into())
}

/// The program of the first monitor in the list, if it is the same program. The list need not be
/// trusted: a file with these seals and these bytes is as good as a new one.
fn shared(guest: BorrowedFd<'_>) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let list = openat(guest, "../.monitor/cgroup.procs", flags, Mode::empty()).ok()?;
    let mut text = [0; 16];
    let len = read(&list, &mut text[..]).ok()?;
    let first = std::str::from_utf8(&text[..len]).ok()?.lines().next()?;
    let image = File::open(format!("/proc/{first}/exe")).ok()?;
    if !fcntl_get_seals(&image).ok()?.contains(SEALS) {
        return None;
    }
    let mut bytes = vec![0; IMAGE.len()];
    let same = image.metadata().ok()?.len() == IMAGE.len() as u64
        && image.read_exact_at(&mut bytes, 0).is_ok()
        && bytes == IMAGE;
    same.then(|| image.into())
}
