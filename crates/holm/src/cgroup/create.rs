//! Making a guest's cgroups.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, CWD, Gid, Uid, chownat, mkdirat};
use rustix::io::Errno;

use super::check::limit_error;
use super::files::{DIR_MODE, make_and_open, open_dir, read_file, write_file};
use super::guest::{GUEST, GuestCgroup};
use super::layout::Controller;
use super::limits::{Limits, Setting, parse_list};
use super::pool::{PoolCgroup, SUBTREE_CONTROL, subtree_control};
use super::v1::make_v1;
use super::{Error, Result};

/// How many cgroups a guest may make. A systemd guest has about 100, and each nested container adds
/// a few. The kernel has 65535 ids for memory cgroups, so dozens of hostile guests cannot use them
/// up.
const DESCENDANTS: &str = "1024";
/// How deep it may nest them, `guest` included. systemd's deepest is 7, and again for each level of
/// nesting.
const DEPTH: &str = "32";

impl GuestCgroup {
    /// Makes the cgroups of a guest, with its limits. The inner one will belong to `owner`, the uid
    /// and gid of guest root on the host. Removes what a killed start has left; an error if the
    /// guest runs.
    pub fn create(
        pool: &PoolCgroup,
        name: &str,
        limits: &Limits,
        owner: (u32, u32),
    ) -> Result<Self> {
        limits.check()?;
        let path = format!("{}/{name}", pool.name());
        let dir = make_guest_dir(pool, name, &path)?;
        let made = set_up(pool, path, dir, limits, owner);
        if made.is_err()
            && let Ok(Some(half_made)) = Self::open(pool, name)
        {
            // The first error is the one to report. If this fails too, the next start removes it.
            let _ = half_made.remove();
        }
        made
    }
}

/// Makes `<pool>/NAME` on v2; an empty one is replaced.
fn make_guest_dir(pool: &PoolCgroup, name: &str, path: &str) -> Result<OwnedFd> {
    let fail = |e| Error::io("make cgroup", path, e);
    let root = pool.layout().open_v2()?;
    let made = match mkdirat(&root, path, DIR_MODE) {
        Err(Errno::NOENT) => {
            pool.make(&root)?;
            mkdirat(&root, path, DIR_MODE)
        }
        Err(Errno::EXIST) => {
            if let Some(stale) = GuestCgroup::open(pool, name)? {
                stale.remove()?;
            }
            mkdirat(&root, path, DIR_MODE)
        }
        made => made,
    };
    made.map_err(fail)?;
    open_dir(&root, path).map_err(fail)
}

fn set_up(
    pool: &PoolCgroup,
    path: String,
    dir: OwnedFd,
    limits: &Limits,
    owner: (u32, u32),
) -> Result<GuestCgroup> {
    let io = |what, file: &str| {
        let path = format!("{path}/{file}");
        move |e| Error::io(what, path, e)
    };
    write_file(&dir, "cgroup.max.descendants", DESCENDANTS)
        .map_err(io("write", "cgroup.max.descendants"))?;
    write_file(&dir, "cgroup.max.depth", DEPTH).map_err(io("write", "cgroup.max.depth"))?;
    // Before a limit enables its controller: this sees whether the pool's cgroup is whole.
    delegate_controllers(pool, &path, &dir)?;
    for setting in limits.v2() {
        if setting.value.is_some() && pool.layout().on_v2(setting.controller) {
            write_v2(pool, &path, &dir, &setting)?;
        }
    }
    let guest = make_and_open(&dir, GUEST).map_err(io("make cgroup", GUEST))?;
    delegate(&guest, owner).map_err(io("delegate cgroup", GUEST))?;
    let v1_tasks = make_v1(pool, &path, limits)?;
    let only_v2 = v1_tasks.is_empty();
    Ok(GuestCgroup { pool: pool.clone(), path, dir, guest, v1_tasks, only_v2 })
}

/// Writes one limit on v2. Enables its controller if no guest has used that before.
pub(super) fn write_v2(
    pool: &PoolCgroup,
    path: &str,
    dir: &OwnedFd,
    setting: &Setting,
) -> Result<()> {
    let value = setting.value.as_deref().unwrap_or(setting.unlimited);
    let written = match write_file(dir, setting.file, value) {
        Err(Errno::NOENT) => {
            pool.enable_controllers(&pool.layout().open_v2()?, &[setting.controller])?;
            write_file(dir, setting.file, value)
        }
        written => written,
    };
    written.map_err(|e| limit_error(setting, path, value, e))?;
    if setting.controller == Controller::Cpuset {
        // v2 accepts CPUs that do not exist, and falls back to the parent's if none of them does.
        let effective = read_file(dir, "cpuset.cpus.effective")
            .map_err(|e| limit_error(setting, path, value, e))?;
        if parse_list(effective.trim()).ok() != parse_list(value).ok() {
            return Err(limit_error(setting, path, value, Errno::RANGE));
        }
    }
    Ok(())
}

/// Enables the common controllers for the guest's own cgroups: systemd uses them for its services.
fn delegate_controllers(pool: &PoolCgroup, path: &str, dir: &OwnedFd) -> Result<()> {
    let common: Vec<_> = pool.layout().v2_common().collect();
    if common.is_empty() {
        return Ok(());
    }
    let text = subtree_control(&common);
    let written = match write_file(dir, SUBTREE_CONTROL, &text) {
        // The start that made the parent was killed before it enabled them there.
        Err(Errno::NOENT) => {
            pool.prepare(&pool.layout().open_v2()?)?;
            write_file(dir, SUBTREE_CONTROL, &text)
        }
        written => written,
    };
    written.map_err(|e| Error::io("enable controllers in", format!("{path}/{SUBTREE_CONTROL}"), e))
}

/// Delegates a cgroup to guest root: gives it the directory, and the files that the kernel lists
/// for that purpose.
fn delegate(guest: &OwnedFd, (uid, gid): (u32, u32)) -> rustix::io::Result<()> {
    let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
    chownat(guest, "", uid, gid, AtFlags::EMPTY_PATH)?;
    for file in read_file(CWD, "/sys/kernel/cgroup/delegate")?.lines() {
        match chownat(guest, file, uid, gid, AtFlags::SYMLINK_NOFOLLOW) {
            // The list includes files of controllers that are not enabled here.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
