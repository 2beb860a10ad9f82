//! The host's cgroup hierarchies, and the controllers of each.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{CWD, Mode, OFlags, openat, statfs};
use rustix::io::Errno;

use super::files::read_file;
use super::{Error, Result};

/// A controller that Holm uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controller {
    /// Share and cap of CPU time.
    Cpu,
    /// The set of CPUs.
    Cpuset,
    /// Memory and swap.
    Memory,
    /// The number of processes and threads.
    Pids,
}

impl Controller {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Cpuset, Self::Memory, Self::Pids];

    /// The kernel's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cpuset => "cpuset",
            Self::Memory => "memory",
            Self::Pids => "pids",
        }
    }
}

/// The cgroup hierarchies of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    v2: PathBuf,
    /// Controllers that the v2 hierarchy has.
    v2_has: Vec<Controller>,
    /// Whether it has the controller of huge pages, which no guest has a limit of its own for.
    v2_has_huge_pages: bool,
    /// Read when it is first needed: reading the list of all mounts takes as long as a mount.
    v1: OnceLock<V1>,
}

/// The v1 hierarchies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct V1 {
    /// The controllers that Holm uses, with the mount points of their hierarchies.
    has: Vec<(Controller, PathBuf)>,
    /// Whether any hierarchy with a controller is mounted, also one that Holm does not use.
    any: bool,
}

/// `CGROUP2_SUPER_MAGIC` of include/uapi/linux/magic.h.
const CGROUP2_MAGIC: i64 = 0x6367_7270;

impl Layout {
    /// Looks for the v2 hierarchy: at the usual paths, then in the list of all mounts.
    pub fn probe() -> Result<Self> {
        // On pure v2, and on hybrid hosts with systemd or OpenRC.
        const USUAL: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
        let is_v2 = |path: &str| match statfs(path) {
            Ok(found) => Ok(found.f_type == CGROUP2_MAGIC),
            Err(Errno::NOENT) => Ok(false),
            Err(e) => Err(Error::io("look at", path, e)),
        };
        let mut layout = if is_v2(USUAL[0])? {
            Self::new(USUAL[0], OnceLock::from(V1::default()))
        } else if is_v2(USUAL[1])? {
            Self::new(USUAL[1], OnceLock::new())
        } else {
            Self::parse(&mountinfo().map_err(|e| Error::io("read", MOUNTINFO, e))?)?
        };
        layout.read_controllers()?;
        Ok(layout)
    }

    fn new(v2: impl Into<PathBuf>, v1: OnceLock<V1>) -> Self {
        Self { v2: v2.into(), v2_has: Vec::new(), v2_has_huge_pages: false, v1 }
    }

    fn read_controllers(&mut self) -> Result<()> {
        let controllers = read_file(self.open_v2()?, "cgroup.controllers").map_err(|e| {
            Error::io("read", self.v2.join("cgroup.controllers").display().to_string(), e)
        })?;
        self.set_controllers(&controllers);
        Ok(())
    }

    /// Finds the hierarchies in the text of a mountinfo file, without the controllers on v2, which
    /// are not in it.
    pub fn parse(mountinfo: &str) -> Result<Self> {
        let mut v2 = None;
        for mount in mountinfo.lines().filter_map(Mount::parse) {
            // There may be bind mounts of parts of it. The first mount of the whole hierarchy is
            // the host's.
            if mount.fstype == "cgroup2"
                && v2.as_ref().is_none_or(|(root, _)| *root != "/" && mount.root == "/")
            {
                v2 = Some((mount.root, mount.point()));
            }
        }
        let (_, v2) = v2.ok_or(Error::NoV2)?;
        Ok(Self::new(v2, OnceLock::from(V1::parse(mountinfo))))
    }

    /// Sets the controllers on v2 from the text of its `cgroup.controllers`.
    pub(super) fn set_controllers(&mut self, controllers: &str) {
        let has = |wanted: &str| controllers.split_whitespace().any(|name| name == wanted);
        self.v2_has = Controller::ALL.into_iter().filter(|one| has(one.name())).collect();
        self.v2_has_huge_pages = has("hugetlb");
    }

    /// Whether all controllers are on the v2 hierarchy.
    pub fn is_pure_v2(&self) -> Result<bool> {
        Ok(!self.v1_hierarchies()?.any)
    }

    /// The mount point of the hierarchy that has this controller; `None` if no hierarchy has it.
    pub fn hierarchy_of(&self, controller: Controller) -> Result<Option<&Path>> {
        if self.on_v2(controller) { Ok(Some(&self.v2)) } else { self.v1(controller) }
    }

    /// Where the v2 hierarchy is mounted.
    pub fn v2_root(&self) -> &Path {
        &self.v2
    }

    /// An unreadable list of mounts is an error: a command that saw no hierarchies would enter a
    /// guest past its limits.
    fn v1_hierarchies(&self) -> Result<&V1> {
        if let Some(v1) = self.v1.get() {
            return Ok(v1);
        }
        let text = mountinfo().map_err(|e| Error::io("read", MOUNTINFO, e))?;
        Ok(self.v1.get_or_init(|| V1::parse(&text)))
    }

    /// Whether a controller is on the v2 hierarchy.
    pub fn on_v2(&self, controller: Controller) -> bool {
        self.v2_has.contains(&controller)
    }

    pub(super) fn v1(&self, controller: Controller) -> Result<Option<&Path>> {
        let mut has = self.v1_hierarchies()?.has.iter();
        Ok(has.find(|(known, _)| *known == controller).map(|(_, path)| path.as_path()))
    }

    /// The mount points of the v1 hierarchies. Controllers that share one are adjacent.
    pub(super) fn v1_roots(&self) -> Result<Vec<&Path>> {
        let mut roots: Vec<&Path> =
            self.v1_hierarchies()?.has.iter().map(|(_, path)| path.as_path()).collect();
        roots.dedup();
        Ok(roots)
    }

    /// The controllers on v2 that are enabled for all guests. cpuset is enabled by the first guest
    /// with such a limit.
    pub(super) fn v2_common(&self) -> impl Iterator<Item = Controller> {
        self.v2_has.iter().copied().filter(|controller| *controller != Controller::Cpuset)
    }

    /// Whether huge pages can be counted on v2.
    pub(super) fn v2_has_huge_pages(&self) -> bool {
        self.v2_has_huge_pages
    }

    pub(super) fn open_v2(&self) -> Result<OwnedFd> {
        open_root(&self.v2)
    }
}

impl V1 {
    fn parse(mountinfo: &str) -> Self {
        let mut v1 = Self::default();
        let mounts = mountinfo.lines().filter_map(Mount::parse);
        for mount in mounts.filter(|mount| mount.fstype == "cgroup") {
            v1.any |= !mount.options.contains("name=");
            for controller in Controller::ALL {
                let here = mount.options.split(',').any(|option| option == controller.name());
                // A hierarchy with a name may have controllers too.
                v1.any |= here;
                if here && !v1.has.iter().any(|(known, _)| *known == controller) {
                    v1.has.push((controller, mount.point()));
                }
            }
        }
        v1
    }
}

const MOUNTINFO: &str = "/proc/self/mountinfo";

fn mountinfo() -> rustix::io::Result<String> {
    read_file(CWD, MOUNTINFO)
}

pub(super) fn open_root(path: &Path) -> Result<OwnedFd> {
    openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|e| Error::io("open", path.display().to_string(), e))
}

/// The fields of a mountinfo line that matter here (`proc_pid_mountinfo(5)`).
struct Mount<'a> {
    root: &'a str,
    point: &'a str,
    fstype: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, point) = (mount.next()?, mount.next()?);
        let mut filesystem = filesystem.split(' ');
        let (fstype, _source, options) =
            (filesystem.next()?, filesystem.next()?, filesystem.next()?);
        Some(Self { root, point, fstype, options })
    }

    /// The mount point, with the kernel's octal escapes of space, tab, newline and backslash
    /// undone.
    fn point(&self) -> PathBuf {
        let bytes = self.point.as_bytes();
        let mut path = Vec::with_capacity(bytes.len());
        let mut i = 0;
        while i < bytes.len() {
            let escaped = self.point.get(i + 1..i + 4).filter(|_| bytes[i] == b'\\');
            if let Some(byte) = escaped.and_then(|octal| u8::from_str_radix(octal, 8).ok()) {
                path.push(byte);
                i += 4;
            } else {
                path.push(bytes[i]);
                i += 1;
            }
        }
        std::ffi::OsString::from_vec(path).into()
    }
}
