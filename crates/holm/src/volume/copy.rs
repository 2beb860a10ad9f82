//! The first content of a volume: what the guest has at the target.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::process::{chdir, fchdir};

use super::{Error, Result};
use crate::pool::{Name, Pool};
use crate::process::{HostNamespaces, call_for_errors, unshare_mounts};
use crate::rootfs::{Layers, Links, Tree, mount_root};

/// Copies what the guest has at `target` to `data`, which must not exist. Returns whether there was
/// anything.
///
/// The guest does not run. Its root is mounted without an id map in a mount namespace that only
/// this process and the copying program have: so owners are copied as they are on the disk.
pub(super) fn copy_of(
    pool: &Pool,
    name: &Name,
    target: &Path,
    layers: Layers<'_>,
    data: &Path,
) -> Result<bool> {
    let host = HostNamespaces::save()?;
    unshare_mounts()?;
    let copied = copy(pool, name, target, layers, data);
    // Out of the guest's files, or they would stay mounted.
    let _ = chdir("/");
    host.restore()?;
    copied
}

fn copy(pool: &Pool, name: &Name, target: &Path, layers: Layers<'_>, data: &Path) -> Result<bool> {
    let refuse =
        |reason: String| Error::Target { name: name.clone(), target: target.to_owned(), reason };
    let tree = Tree::new(mount_root(&pool.stage_dir(), layers, None)?);
    // As a bind's target: the user has chosen it, and links are followed inside the guest's root.
    let there: OwnedFd = match tree.open(target, Links::Follow) {
        Ok(there) => there,
        Err(Errno::NOENT) => return Ok(false),
        Err(Errno::LOOP) => return Err(refuse("its symbolic links lead in a circle".to_owned())),
        Err(Errno::NOTDIR) => return Err(refuse("a part of it is not a directory".to_owned())),
        Err(errno) => return Err(Error::io("open the guest's", target, errno)),
    };
    let stat = fstat(&there).map_err(|errno| Error::io("look at the guest's", target, errno))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err(refuse("it is not a directory".to_owned()));
    }
    fchdir(&there).map_err(|errno| Error::io("enter the guest's", target, errno))?;
    copy_here(name, target, data).map(|()| true)
}

/// Copies a directory of the host's to `data`, which must not exist.
pub(super) fn copy_directory(name: &Name, from: &Path, data: &Path) -> Result<()> {
    chdir(from).map_err(|errno| Error::io("enter", from, errno))?;
    let copied = copy_here(name, from, data);
    let _ = chdir("/");
    copied
}

/// Copies the working directory, which is `from`.
fn copy_here(name: &Name, from: &Path, data: &Path) -> Result<()> {
    // cp(1) follows no links below `.`. It is killed with this process, so that nothing is written
    // into what the next command removes.
    let mut cp = Command::new("setpriv");
    cp.args(["--pdeathsig", "KILL", "--", "cp", "--recursive", "--no-dereference"]);
    cp.args(["--preserve=mode,ownership,timestamps,links,xattr", "--one-file-system"]);
    cp.args(["--no-target-directory", "--", "."]).arg(data);
    let called =
        call_for_errors(&mut cp, "").map_err(|error| Error::io("run", "setpriv", error))?;
    if called.status.success() {
        return Ok(());
    }
    let first = called.printed.lines().next().unwrap_or("cp was killed").trim().to_owned();
    if first.ends_with("No space left on device") {
        return Err(Error::NoRoom { name: name.clone(), from: from.to_owned() });
    }
    Err(Error::io("copy", from, io::Error::other(first)))
}

/// Makes a directory with this mode, whatever the caller's umask.
pub(super) fn directory(path: &Path, mode: u32) -> Result<()> {
    fs::DirBuilder::new()
        .mode(mode)
        .create(path)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)))
        .map_err(|error| Error::io("make the directory", path, error))
}
