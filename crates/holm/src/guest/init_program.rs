use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::error::{Error, Result};
use super::handle::Guest;
use super::running::running;
use crate::cgroup::PoolCgroup;
use crate::failed::is_there;
use crate::monitor;
use crate::pool::{Name, Pool};

/// The file of Holm's minimal init in the Holm root, which all guests share. It is written if there
/// is none of this version of Holm.
pub(super) fn init_program(pool: &Pool) -> Result<PathBuf> {
    let path = pool.root().join(format!("init-{INIT:016x}"));
    if is_there(&path)? {
        return Ok(path);
    }
    let new = pool.tmp_file("init")?;
    let fail = |error| Error::io("write Holm's init to", &path, error);
    fs::write(&new, monitor::IMAGE).map_err(fail)?;
    fs::set_permissions(&new, Permissions::from_mode(0o555)).map_err(fail)?;
    File::open(&new).and_then(|file| file.sync_all()).map_err(fail)?;
    // Never replaces one that another start has just written: a file that has been unlinked cannot
    // be mounted.
    match renameat_with(CWD, &new, CWD, &path, RenameFlags::NOREPLACE) {
        Ok(()) => {
            remove_unused(pool, &path);
            Ok(path)
        }
        Err(Errno::EXIST) => fs::remove_file(&new).map_err(fail).map(|()| path.clone()),
        Err(errno) => Err(fail(errno.into())),
    }
}

/// Removes the inits of other versions of Holm that no guest runs. It is called once for each
/// version, so it may look at every guest. What it cannot look at stays.
fn remove_unused(pool: &Pool, own: &Path) {
    let file = |path: &Path| fs::metadata(path).ok().map(|data| (data.dev(), data.ino()));
    let Ok(cgroups) = pool.cgroup().and_then(PoolCgroup::guests) else { return };
    let mut used = Vec::new();
    for name in cgroups.iter().filter_map(|name| Name::new(name).ok()) {
        match running(&Guest::new(pool, &name)).map(|guest| guest.record.init_pid) {
            Ok(init) => match file(Path::new(&format!("/proc/{init}/exe"))) {
                Some(executed) => used.push(executed),
                None => return,
            },
            Err(Error::NotRunning(_)) => {}
            Err(_) => return,
        }
    }
    let Ok(entries) = fs::read_dir(pool.root()) else { return };
    for entry in entries.flatten().filter(|entry| entry.path() != own) {
        let is_init = entry.file_name().to_string_lossy().starts_with("init-");
        if is_init && file(&entry.path()).is_some_and(|file| !used.contains(&file)) {
            let _ = fs::remove_file(entry.path());
        }
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
