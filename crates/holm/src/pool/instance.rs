use std::fs;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;

use super::error::{Error, Result};
use super::files::write;
use super::lock::Lock;
use crate::cgroup::{GuestCgroup, Layout, PoolCgroup};

/// The root that is used when neither `--root` nor `HOLM_ROOT` names another.
pub const DEFAULT_ROOT: &str = "/var/lib/holm";

/// What lives only while the host is up.
pub(super) const RUN: &str = "/run/holm";

/// Instance numbers run from 1 to this: 27 blocks of 2^26 user ids lie between the ranges that
/// distributions give to users and the one that systemd sets aside (from `0x7000_0000`).
pub const INSTANCES: u8 = 27;

/// The file of a root in which its number is stored.
const STORED: &str = "instance";

/// Finds the root's instance number, or takes a free one.
///
/// A number is taken by making a symbolic link, which succeeds for one process only. The number is
/// also stored in the root, so that it is the same after a reboot of the host unless it was taken since.
pub fn of(root: &Path) -> Result<u8> {
    let instances = Path::new(RUN).join("instances");
    let holds = |number: &u8| {
        fs::read_link(instances.join(number.to_string())).is_ok_and(|target| target == root)
    };
    if let Some(number) = stored(root).filter(holds) {
        return Ok(number);
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(&instances)
        .map_err(|error| Error::io("make the directory", &instances, error))?;
    let _lock = Lock::directory(&instances)?;
    // Only now: it may have been released, or taken, meanwhile.
    let known = stored(root);
    if let Some(number) = known.filter(holds) {
        return Ok(number);
    }
    let first = known.or((root == Path::new(DEFAULT_ROOT)).then_some(1));
    for number in first.into_iter().chain((1..=INSTANCES).rev()) {
        let link = instances.join(number.to_string());
        let taken =
            fs::read_link(&link).is_ok_and(|other| other != root && other.join("stage").is_dir());
        if taken || (known != Some(number) && has_guests(number)) {
            continue;
        }
        let _ = fs::remove_file(&link);
        symlink(root, &link).map_err(|error| Error::io("make the link", &link, error))?;
        // The first command after each boot comes by here: it needs no room on the disk.
        if known != Some(number) {
            write(&root.join(STORED), &format!("{number}\n"))?;
        }
        return Ok(number);
    }
    Err(Error::NoInstance { directory: instances, count: INSTANCES })
}

/// Releases a root's number, here and in the root: another may have it when this one is used again.
pub(super) fn release(root: &Path, number: u8) -> Result<()> {
    let instances = Path::new(RUN).join("instances");
    let _lock = Lock::directory(&instances)?;
    for path in [root.join(STORED), instances.join(number.to_string())] {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The name of the control group that holds a root's guests.
pub fn group(root: &Path, instance: u8) -> String {
    if root == Path::new(DEFAULT_ROOT) { "holm".to_owned() } else { format!("holm-{instance}") }
}

/// The number that a root had last.
fn stored(root: &Path) -> Option<u8> {
    fs::read_to_string(root.join(STORED)).ok()?.trim().parse().ok()
}

/// Whether guests run under a number that no link names: their root has yet to find it again after /run was wiped. A
/// root that took the number would take those guests for its own, and end them.
fn has_guests(number: u8) -> bool {
    // Without control groups there are no guests.
    let Ok(layout) = Layout::probe() else { return false };
    let run = |root: &Path| {
        let pool = PoolCgroup::new(layout.clone(), group(root, number));
        let lives = |name: &String| {
            let cgroup = GuestCgroup::open(&pool, name);
            cgroup.is_ok_and(|found| found.is_some_and(|guest| guest.populated().unwrap_or(true)))
        };
        pool.guests().unwrap_or_default().iter().any(lives)
    };
    let default = Path::new(DEFAULT_ROOT);
    run(Path::new("any other")) || (stored(default) == Some(number) && run(default))
}
