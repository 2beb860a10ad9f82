use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::error::{Error, Result};
use super::files::write;
use super::lock::Lock;
use crate::cgroup::{self, GuestCgroup, Layout, PoolCgroup};
use crate::failed::{is_there, link_if_there, make_directories, read_if_there};
use crate::process::Waiting;

/// The root that is used if neither `--root` nor `HOLM_ROOT` is given.
pub const DEFAULT_ROOT: &str = "/var/lib/holm";

/// The cgroup of the guests of the default root.
const DEFAULT_CGROUP: &str = "holm";

/// The directory of what must not survive a reboot of the host.
pub(super) const RUN: &str = "/run/holm";

/// The largest instance number; the smallest is 1. There is room for 27 blocks of 2^26 user ids
/// between the ranges that distributions give to users and the one that systemd reserves (from
/// `0x7000_0000`).
pub const MAX_INSTANCE: u8 = 27;

/// What stands for the number of a root that has none: nothing on the host belongs to it.
pub(super) const NONE: u8 = 0;

/// The file in a root that stores its number.
const NUMBER_FILE: &str = "instance";

/// The root's instance number; allocates a free one if it has none.
///
/// The allocation is a symbolic link. The number is also stored in the root, so that it gets the
/// same one after a reboot of the host, unless another root has taken it since.
pub fn allocate(root: &Path) -> Result<u8> {
    let instances = Path::new(RUN).join("instances");
    let is_own =
        |number: u8| Ok::<_, Error>(holder(&instances, number)?.is_some_and(|it| it == root));
    if let Some(number) = stored(root)?
        && is_own(number)?
    {
        return Ok(number);
    }
    make_private(&instances)?;
    let _lock = lock(&instances)?;
    // Read again under the lock: another command may have released or changed it.
    let known = stored(root)?;
    if let Some(number) = known
        && is_own(number)?
    {
        return Ok(number);
    }
    let first = known.or((root == Path::new(DEFAULT_ROOT)).then_some(1));
    for number in first.into_iter().chain((1..=MAX_INSTANCE).rev()) {
        let link = instances.join(number.to_string());
        let taken = match holder(&instances, number)? {
            Some(other) if other != root => is_there(&other.join("stage"))?,
            _ => false,
        };
        if taken || (known != Some(number) && has_guests(number)?) {
            continue;
        }
        let _ = fs::remove_file(&link);
        symlink(root, &link).map_err(|error| Error::io("make the link", &link, error))?;
        // Written only if it has changed: the first command after each boot of the host gets here,
        // and must not fail on a full disk.
        if known != Some(number) {
            write(root, &root.join(NUMBER_FILE), &format!("{number}\n"))?;
        }
        return Ok(number);
    }
    Err(Error::NoInstance { directory: instances, count: MAX_INSTANCE })
}

/// Releases a root's number. It is also removed from the root, which may get another when it is
/// used again.
pub(super) fn release(root: &Path, number: u8) -> Result<()> {
    let instances = Path::new(RUN).join("instances");
    let _lock = lock(&instances)?;
    for path in [root.join(NUMBER_FILE), instances.join(number.to_string())] {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The name of the cgroup of a root's guests.
pub fn cgroup_name(root: &Path, instance: u8) -> String {
    if root == Path::new(DEFAULT_ROOT) { DEFAULT_CGROUP.to_owned() } else { other_cgroup(instance) }
}

/// The name of the cgroup of the guests of a root that is not the default one.
fn other_cgroup(instance: u8) -> String {
    format!("{DEFAULT_CGROUP}-{instance}")
}

/// Makes the directory of instance numbers. Users of the host can neither see the guests' names
/// below /run/holm, nor lock what commands wait for.
fn make_private(instances: &Path) -> Result<()> {
    make_directories(instances, 0o700)
        .and_then(|()| fs::set_permissions(RUN, fs::Permissions::from_mode(0o700)))
        .map_err(|error| Error::io("make the directory", instances, error))
}

/// Locks the allocation of numbers.
fn lock(instances: &Path) -> Result<Lock> {
    Lock::directory(instances, Waiting { what: &"the instance numbers", say: None })
}

/// The root that holds a number.
fn holder(instances: &Path, number: u8) -> Result<Option<PathBuf>> {
    Ok(link_if_there(&instances.join(number.to_string()))?)
}

/// The number stored in a root.
pub(super) fn stored(root: &Path) -> Result<Option<u8>> {
    let text = read_if_there(&root.join(NUMBER_FILE))?;
    Ok(text.and_then(|text| text.trim().parse().ok()))
}

/// Whether guests run under a number that has no link, because /run was wiped and no command has
/// run in their root since. Another root that took the number would take those guests for its own
/// and end them.
fn has_guests(number: u8) -> Result<bool> {
    let layout = match Layout::probe() {
        // Without cgroups there are no guests.
        Err(cgroup::Error::NoV2) => return Ok(false),
        layout => layout?,
    };
    let mut cgroups = vec![other_cgroup(number)];
    if stored(Path::new(DEFAULT_ROOT))? == Some(number) {
        cgroups.push(DEFAULT_CGROUP.to_owned());
    }
    for name in cgroups {
        let pool = PoolCgroup::new(layout.clone(), name);
        for guest in pool.guests()? {
            if let Some(guest) = GuestCgroup::open(&pool, &guest)?
                && guest.populated()?
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
