//! Making a guest's cgroups, and the group that holds them all.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid, chownat, mkdirat, openat};
use rustix::io::Errno;

use super::check::limit_error;
use super::files::{DIR_MODE, make, make_and_open, open_dir, read_file, write_file};
use super::layout::{Controller, Layout, open_root};
use super::limits::{Limits, Setting, parse_list};
use super::{Error, GUEST, GuestCgroup, Result, walk};

/// Cgroups that a guest may make. A systemd guest has about 100 and each nested container a few. The
/// kernel has 65535 ids for memory cgroups, so that dozens of hostile guests do not use them up.
const DESCENDANTS: &str = "1024";
/// How deep it may nest them, `guest` included. systemd's deepest is 7, and again for each level of nesting.
const DEPTH: &str = "32";

/// The monitors' cgroup. A name with a dot in front is never a guest's.
pub(super) const MONITOR: &str = ".monitor";

impl GuestCgroup {
    /// Makes the cgroups of a guest with its limits; `owner` (uid and gid of guest root on the host) gets
    /// the inner one. What a start killed halfway left is removed; a guest that runs is an error.
    pub fn create(
        layout: &Layout,
        group: &str,
        name: &str,
        limits: &Limits,
        owner: (u32, u32),
    ) -> Result<Self> {
        limits.check()?;
        let path = format!("{group}/{name}");
        let root = layout.open_v2()?;
        let dir = make_guest_dir(layout, group, &path, &root)?;
        let made = fill(layout, group, path, dir, limits, owner);
        if made.is_err()
            && let Ok(Some(half_made)) = Self::open(layout, group, name)
        {
            // The first error is the one to tell; the next start removes what cannot be removed now.
            let _ = half_made.remove();
        }
        made
    }
}

/// Makes NAME on v2, empty and new.
fn make_guest_dir(layout: &Layout, group: &str, path: &str, root: &OwnedFd) -> Result<OwnedFd> {
    let fail = |e| Error::io("make cgroup", path, e);
    let made = match mkdirat(root, path, DIR_MODE) {
        Err(Errno::NOENT) => {
            make_group(layout, group, root)?;
            mkdirat(root, path, DIR_MODE)
        }
        Err(Errno::EXIST) => {
            let (group, name) = path.split_once('/').unwrap_or((group, path));
            if let Some(stale) = GuestCgroup::open(layout, group, name)? {
                stale.remove()?;
            }
            mkdirat(root, path, DIR_MODE)
        }
        made => made,
    };
    made.map_err(fail)?;
    open_dir(root, path).map_err(fail)
}

fn fill(
    layout: &Layout,
    group: &str,
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
    for setting in limits.v2() {
        if setting.value.is_some() && layout.on_v2(setting.controller) {
            write_v2(layout, group, &path, &dir, &setting)?;
        }
    }
    delegate_controllers(layout, group, &path, &dir)?;
    let guest = make_and_open(&dir, GUEST).map_err(io("make cgroup", GUEST))?;
    chown(&guest, owner).map_err(io("give to the guest's root the cgroup", GUEST))?;
    let v1_tasks = make_v1(layout, group, &path, limits)?;
    let only_v2 = v1_tasks.is_empty();
    Ok(GuestCgroup { layout: layout.clone(), path, dir, guest, v1_tasks, only_v2 })
}

/// Writes one limit on v2. The first guest that uses a controller turns it on.
pub(super) fn write_v2(
    layout: &Layout,
    group: &str,
    path: &str,
    dir: &OwnedFd,
    setting: &Setting,
) -> Result<()> {
    let value = setting.value.as_deref().unwrap_or(setting.none);
    let written = match write_file(dir, setting.file, value) {
        Err(Errno::NOENT) => {
            enable(&layout.open_v2()?, group, &[setting.controller])?;
            write_file(dir, setting.file, value)
        }
        written => written,
    };
    written.map_err(|e| limit_error(setting, path, value, e))?;
    if setting.controller == Controller::Cpuset {
        // v2 takes CPUs that are not there, and falls back on the parent's where none is.
        let effective = read_file(dir, "cpuset.cpus.effective")
            .map_err(|e| limit_error(setting, path, value, e))?;
        if parse_list(effective.trim()).ok() != parse_list(value).ok() {
            return Err(limit_error(setting, path, value, Errno::RANGE));
        }
    }
    Ok(())
}

/// Lets the guest use the common controllers for its own services (systemd wants them).
fn delegate_controllers(layout: &Layout, group: &str, path: &str, dir: &OwnedFd) -> Result<()> {
    let common: Vec<_> = layout.v2_common().collect();
    if common.is_empty() {
        return Ok(());
    }
    let text = plus(&common);
    let written = match write_file(dir, SUBTREE, &text) {
        // The start that made the group was killed before it turned them on.
        Err(Errno::NOENT) => {
            enable(&layout.open_v2()?, group, &common)?;
            write_file(dir, SUBTREE, &text)
        }
        written => written,
    };
    written.map_err(|e| Error::io("turn on controllers in", format!("{path}/{SUBTREE}"), e))
}

const SUBTREE: &str = "cgroup.subtree_control";

fn plus(controllers: &[Controller]) -> String {
    let words: Vec<_> =
        controllers.iter().map(|controller| format!("+{}", controller.name())).collect();
    words.join(" ")
}

/// Makes the group of all guests on v2. Each step may be done already, by another start at the same time.
fn make_group(layout: &Layout, group: &str, root: &OwnedFd) -> Result<()> {
    make(root, group).map_err(|e| Error::io("make cgroup", group, e))?;
    enable(root, group, &layout.v2_common().collect::<Vec<_>>())
}

/// Turns controllers on for the group's children. While the group has them on, nobody can turn them off
/// at the root (EBUSY): systemd tries so when it applies its own units' settings, and takes no for an answer.
fn enable(root: &OwnedFd, group: &str, controllers: &[Controller]) -> Result<()> {
    if controllers.is_empty() {
        return Ok(());
    }
    let text = plus(controllers);
    for file in [SUBTREE.to_owned(), format!("{group}/{SUBTREE}")] {
        let mut written = write_file(root, &file, &text);
        if written == Err(Errno::NOENT) {
            // systemd turned them off at the root between the two writes.
            written =
                write_file(root, SUBTREE, &text).and_then(|()| write_file(root, &file, &text));
        }
        written.map_err(|e| match e {
            Errno::BUSY => Error::Occupied { path: file.clone() },
            e => Error::io("turn on controllers in", file.clone(), e),
        })?;
    }
    Ok(())
}

/// Gives the folder, and the files that the kernel says are to be given with it, to the guest's root.
fn chown(guest: &OwnedFd, (uid, gid): (u32, u32)) -> rustix::io::Result<()> {
    let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
    chownat(guest, "", uid, gid, AtFlags::EMPTY_PATH)?;
    for file in read_file(CWD, "/sys/kernel/cgroup/delegate")?.lines() {
        match chownat(guest, file, uid, gid, AtFlags::SYMLINK_NOFOLLOW) {
            // The list has files of controllers that are not on here.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Makes NAME in the v1 hierarchies that carry a limit, and opens their `tasks`.
fn make_v1(layout: &Layout, group: &str, path: &str, limits: &Limits) -> Result<Vec<OwnedFd>> {
    let mut tasks = Vec::new();
    let settings: Vec<_> = limits.v1_wanted(layout)?;
    if settings.is_empty() {
        return Ok(tasks);
    }
    for root in layout.v1_roots() {
        let here: Vec<_> =
            settings.iter().filter(|setting| layout.v1(setting.controller) == Some(root)).collect();
        if here.is_empty() {
            continue;
        }
        let dir = make_v1_dir(root, group, path)?;
        for setting in here {
            let value = setting.value.as_deref().unwrap_or(setting.none);
            write_file(&dir, setting.file, value)
                .map_err(|e| limit_error(setting, path, value, e))?;
        }
        let file = openat(&dir, "tasks", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
        tasks.push(file.map_err(|e| {
            Error::io("open", root.join(path).join("tasks").display().to_string(), e)
        })?);
    }
    Ok(tasks)
}

impl GuestCgroup {
    /// The `tasks` files of the v1 hierarchies that a running guest has a cgroup in, for a process that is
    /// to enter it.
    pub fn open_v1_tasks(&self) -> Result<Vec<OwnedFd>> {
        let mut tasks = Vec::new();
        for root in self.layout.v1_roots() {
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

/// Makes NAME in one v1 hierarchy, empty and new, with the CPUs and memory nodes that a cpuset needs
/// before a process may enter.
pub(super) fn make_v1_dir(root: &Path, group: &str, path: &str) -> Result<OwnedFd> {
    let at = open_root(root)?;
    let fail = |e| Error::io("make cgroup", root.join(path).display().to_string(), e);
    let made = match mkdirat(&at, path, DIR_MODE) {
        Err(Errno::NOENT) => {
            make(&at, group).map_err(fail)?;
            inherit_cpuset(&at, group).map_err(fail)?;
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

/// Copies the parent's CPUs and memory nodes to a v1 cpuset, which starts with none.
fn inherit_cpuset(at: impl AsFd, path: &str) -> rustix::io::Result<()> {
    let parent = path.rsplit_once('/').map_or(String::new(), |(parent, _)| format!("{parent}/"));
    for file in ["cpuset.cpus", "cpuset.mems"] {
        match read_file(&at, &format!("{parent}{file}")) {
            Ok(value) => write_file(&at, &format!("{path}/{file}"), value.trim())?,
            // Another controller's hierarchy.
            Err(Errno::NOENT) => return Ok(()),
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// The cgroup of the monitors, made if it is not there. It is outside every guest's limits and is never
/// frozen or killed with one.
pub fn monitor_fd(layout: &Layout, group: &str) -> Result<OwnedFd> {
    let root = layout.open_v2()?;
    let path = format!("{group}/{MONITOR}");
    match open_dir(&root, &path) {
        Err(Errno::NOENT) => {
            make_group(layout, group, &root)?;
            make_and_open(&root, &path)
        }
        result => result,
    }
    .map_err(|e| Error::io("make cgroup", path, e))
}

/// The names of the guests that have a cgroup: those that run, and those whose end nobody tidied up.
pub fn guests(layout: &Layout, group: &str) -> Result<Vec<String>> {
    let fail = |e| Error::io("list cgroup", group, e);
    let children = match open_dir(layout.open_v2()?, group) {
        Ok(dir) => walk::children(&dir).map_err(fail)?,
        Err(Errno::NOENT) => Vec::new(),
        Err(e) => return Err(fail(e)),
    };
    let mut names: Vec<_> =
        children.into_iter().filter_map(|name| name.into_string().ok()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort_unstable();
    Ok(names)
}
