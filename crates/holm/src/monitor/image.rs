//! The program that monitors and minimal inits are.

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::io::{self, Write};
use std::os::fd::OwnedFd;

/// The program `holm-init`: static, the same bytes for both its roles.
pub const IMAGE: &[u8] = include_bytes!(env!("HOLM_INIT_IMAGE"));

/// The program in a file of memory that nobody can change any more.
pub fn seal() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::EXEC;
    let mut file = std::fs::File::from(memfd_create("holm-init", flags)?);
    file.write_all(IMAGE)?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}
