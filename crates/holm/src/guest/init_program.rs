use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::error::{Error, Result};
use crate::failed::is_there;
use crate::monitor;
use crate::pool::Pool;

/// The file of Holm's minimal init in the Holm root, which all guests share. It is written if there
/// is none of this version of Holm.
pub(super) fn init_program(pool: &Pool) -> Result<PathBuf> {
    let path = pool.root().join(format!("init-{INIT:016x}"));
    if is_there(&path)? {
        return Ok(path);
    }
    let new = pool.root().join(format!(".init.{}", std::process::id()));
    let fail = |error| Error::io("write Holm's init to", &path, error);
    fs::write(&new, monitor::IMAGE).map_err(fail)?;
    fs::set_permissions(&new, Permissions::from_mode(0o555)).map_err(fail)?;
    File::open(&new).and_then(|file| file.sync_all()).map_err(fail)?;
    // Never replaces one that another start has just written: a file that has been unlinked cannot
    // be mounted.
    match renameat_with(CWD, &new, CWD, &path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(path),
        Err(Errno::EXIST) => fs::remove_file(&new).map_err(fail).map(|()| path.clone()),
        Err(errno) => Err(fail(errno.into())),
    }
}

/// Identifies a version of minimal init. Computing it at run time would cost each start 0.1 ms.
const INIT: u64 = fingerprint(monitor::IMAGE);

/// FNV-1a.
const fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}
