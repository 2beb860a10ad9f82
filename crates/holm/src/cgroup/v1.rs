//! A guest's cgroups in the v1 hierarchies of a hybrid host.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

use super::check::limit_error;
use super::files::{DIR_MODE, make, open_dir, read_file, write_file};
use super::guest::GuestCgroup;
use super::layout::{Layout, open_root};
use super::limits::{Limits, Setting};
use super::pool::PoolCgroup;
use super::{Error, Result, walk};

/// Makes `<pool>/NAME` in the v1 hierarchies that carry a limit, and opens their `tasks`.
pub(super) fn make_v1(pool: &PoolCgroup, path: &str, limits: &Limits) -> Result<Vec<OwnedFd>> {
    let mut tasks = Vec::new();
    let settings: Vec<_> = limits.v1_wanted(pool.layout())?;
    if settings.is_empty() {
        return Ok(tasks);
    }
    for root in pool.layout().v1_roots()? {
        let here = pool.layout().v1_settings_at(root, &settings)?;
        if here.is_empty() {
            continue;
        }
        let dir = make_v1_dir(root, pool.name(), path)?;
        for setting in here {
            let value = setting.value.as_deref().unwrap_or(setting.unlimited);
            match write_file(&dir, setting.file, value) {
                Err(Errno::NOENT) if setting.if_there => {}
                written => written.map_err(|e| limit_error(setting, path, value, e))?,
            }
        }
        let file = openat(&dir, "tasks", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
        tasks.push(file.map_err(|e| {
            Error::io("open", root.join(path).join("tasks").display().to_string(), e)
        })?);
    }
    Ok(tasks)
}

impl Layout {
    /// Those of the settings whose controllers are in one v1 hierarchy, and not on v2.
    pub(super) fn v1_settings_at<'a>(
        &self,
        root: &Path,
        settings: &'a [Setting],
    ) -> Result<Vec<&'a Setting>> {
        let mut here = Vec::new();
        for setting in settings.iter().filter(|setting| !self.on_v2(setting.controller)) {
            if self.v1(setting.controller)? == Some(root) {
                here.push(setting);
            }
        }
        Ok(here)
    }
}

/// Makes `<pool>/NAME` in one v1 hierarchy, replacing an empty one. A cpuset gets the CPUs and
/// memory nodes that it needs before a process may enter.
pub(super) fn make_v1_dir(root: &Path, pool: &str, path: &str) -> Result<OwnedFd> {
    let at = open_root(root)?;
    let fail = |e| Error::io("make cgroup", root.join(path).display().to_string(), e);
    let made = match mkdirat(&at, path, DIR_MODE) {
        Err(Errno::NOENT) => {
            make(&at, pool).map_err(fail)?;
            inherit_cpuset(&at, pool).map_err(fail)?;
            mkdirat(&at, path, DIR_MODE)
        }
        Err(Errno::EXIST) => {
            walk::remove_empty(root, path)?;
            mkdirat(&at, path, DIR_MODE)
        }
        made => made,
    };
    made.and_then(|()| inherit_cpuset(&at, path)).and_then(|()| open_dir(&at, path)).map_err(fail)
}

/// Copies the parent's CPUs and memory nodes to a v1 cpuset, which is created without any.
fn inherit_cpuset(at: impl AsFd, path: &str) -> rustix::io::Result<()> {
    let parent = path.rsplit_once('/').map_or(String::new(), |(parent, _)| format!("{parent}/"));
    for file in ["cpuset.cpus", "cpuset.mems"] {
        match read_file(&at, &format!("{parent}{file}")) {
            Ok(value) => write_file(&at, &format!("{path}/{file}"), value.trim())?,
            // This hierarchy has another controller.
            Err(Errno::NOENT) => return Ok(()),
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

impl GuestCgroup {
    /// Opens the `tasks` files of a running guest in the v1 hierarchies, for a process that is to
    /// enter it.
    pub fn open_v1_tasks(&self) -> Result<Vec<OwnedFd>> {
        let mut tasks = Vec::new();
        for root in self.layout().v1_roots()? {
            let path = root.join(&self.path).join("tasks");
            match openat(CWD, &path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
                Ok(file) => tasks.push(file),
                Err(Errno::NOENT) => {}
                Err(e) => return Err(Error::io("open", path.display().to_string(), e)),
            }
        }
        Ok(tasks)
    }
}
