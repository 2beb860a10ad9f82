use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, UnmountFlags, unmount};
use rustix::process::{fchdir, pivot_root};

use super::fsmount::set_flags;
use super::table::{Mount, Part, ROOT_FLAGS, TABLE, What, When};
use super::{
    Error, Filesystem, Layers, Links, Point, Result, Tree, api_filesystems, binds, dev,
    mount_disk_image, mount_root, mount_tmpfs,
};
use crate::config::BindMount;

/// What the mounts of one guest are made of, besides what all guests have in common.
#[allow(clippy::struct_excessive_bools, reason = "facts, each independent of the others")]
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// A directory with the mountpoints `image`, `objects`, `disk` and `root`.
    pub stage: &'a Path,
    /// What the root is made of.
    pub layers: Layers<'a>,
    /// The host's id of guest root.
    pub base: u32,
    /// Size of /dev/shm in bytes.
    pub shm: u64,
    /// Host devices that the guest gets.
    pub devices: &'a [PathBuf],
    /// Host directories and files to bind.
    pub binds: &'a [BindMount],
    /// Volumes to mount.
    pub volumes: &'a VolumeMounts,
    /// Minimal init, if it is to be executed.
    pub init_program: Option<&'a Path>,
    /// The guest's private layer is on disk and outlives its runs.
    pub persistent: bool,
    /// The guest can write to its root.
    pub writable: bool,
    /// The guest shares the host's network.
    pub host_network: bool,
    /// Containers may run in the guest.
    pub nesting: bool,
}

/// The mounts of a guest's volumes.
#[derive(Clone, Debug, Default)]
pub struct VolumeMounts {
    /// Disk images, and where each is mounted first, in the launcher's mount namespace.
    pub images: Vec<(PathBuf, PathBuf)>,
    /// Directories to bind, of which some are in images.
    pub binds: Vec<BindMount>,
}

/// The namespaces of the guest that the launcher need not join to mount in them.
#[derive(Debug)]
pub struct Namespaces {
    /// Its id map is the map of the mounts.
    pub user: OwnedFd,
    /// /proc shows its processes.
    pub pid: OwnedFd,
}

/// A guest's mounts while they are being made.
#[derive(Debug)]
pub struct Mounts<'a> {
    tree: Tree,
    sources: Sources<'a>,
    namespaces: &'a Namespaces,
    /// The first masked directory's mount, of which the others are copies.
    empty: Option<OwnedFd>,
}

impl<'a> Mounts<'a> {
    /// Mounts the root.
    pub fn new(sources: Sources<'a>, namespaces: &'a Namespaces) -> Result<Self> {
        let root = mount_root(sources.stage, sources.layers, Some(namespaces.user.as_fd()))?;
        Ok(Self { tree: Tree::new(root), sources, namespaces, empty: None })
    }

    /// The guest's root.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The guest's /proc, once it is mounted.
    pub fn proc(&self) -> Result<OwnedFd> {
        let path = Path::new("/proc");
        self.tree
            .open(path, Links::Refuse)
            .map_err(|errno| Error::io("open the guest's", path, errno))
    }

    /// Makes the mounts of a part, in the order of the table. For [`Part::Sys`] the caller has
    /// joined the ipc, cgroup and network namespaces of the guest, and still has its own mount
    /// namespace.
    pub fn make(&mut self, part: Part) -> Result<()> {
        for mount in TABLE.iter().filter(|mount| mount.part == part) {
            if self.has(mount.when)? {
                self.mount(mount)?;
            }
        }
        Ok(())
    }

    /// Makes the tree the root of this mount namespace, and of all processes in it, and drops the
    /// host's.
    pub fn pivot(self) -> Result<()> {
        let guest_root = "the guest's root";
        if !self.sources.writable {
            set_flags(self.tree.root(), ROOT_FLAGS | MountAttrFlags::MOUNT_ATTR_RDONLY)
                .map_err(|error| Error::io("make read-only", guest_root, error))?;
        }
        fchdir(self.tree.root()).map_err(|errno| Error::io("enter", guest_root, errno))?;
        pivot_root(".", ".").map_err(|errno| Error::io("pivot into", guest_root, errno))?;
        unmount(".", UnmountFlags::DETACH)
            .map_err(|errno| Error::io("drop", "the host's root", errno))
    }

    fn has(&self, when: When) -> Result<bool> {
        Ok(match when {
            When::Always | When::Named | When::Volumes => true,
            // What is in memory anyway needs no /run of its own.
            When::Persistent => self.sources.persistent || !self.sources.writable,
            When::MinimalInit => self.sources.init_program.is_some(),
            When::HostNetwork => self.sources.host_network,
            When::OwnNetwork => !self.sources.host_network,
            When::Nesting => !self.sources.host_network && self.sources.nesting,
            When::NoNesting => !self.sources.host_network && !self.sources.nesting,
            When::Present(path) => self.tree.exists(Path::new(path))?,
        })
    }

    fn mount(&mut self, mount: &Mount) -> Result<()> {
        match mount.what {
            // `new` has mounted it.
            What::Root => Ok(()),
            What::Proc => {
                api_filesystems::attach_proc(&self.tree, mount, self.namespaces.pid.as_fd())
            }
            What::Volumes => {
                let VolumeMounts { images, binds } = self.sources.volumes;
                images.iter().try_for_each(|(image, on)| mount_disk_image(image, on))?;
                self.bind(binds, mount)
            }
            What::Binds => self.bind(self.sources.binds, mount),
            What::Program | What::File(_) => self.attach(mount, Point::File),
            _ => self.attach(mount, Point::Directory),
        }
    }

    fn bind(&self, binds: &[BindMount], mount: &Mount) -> Result<()> {
        binds.iter().try_for_each(|bind| {
            let (made, point) = binds::make(bind, mount.flags, self.user_namespace())?;
            self.tree.attach(&made, &bind.target, point, Links::Follow)
        })
    }

    fn attach(&mut self, mount: &Mount, point: Point) -> Result<()> {
        let made = self.detached(mount)?;
        self.tree.attach(&made, Path::new(mount.at), point, Links::Refuse)?;
        if mount.what == What::Empty {
            // Before Linux 6.15 only a mount that is attached can be copied.
            self.empty.get_or_insert(made);
        }
        Ok(())
    }

    /// A mount of the table, still detached.
    fn detached(&self, mount: &Mount) -> Result<OwnedFd> {
        let Mount { flags, .. } = *mount;
        match mount.what {
            What::Devices => dev::mount_dev(self.sources.devices, flags, self.user_namespace()),
            What::Terminals => dev::mount_devpts(self.sources.base, flags),
            What::SharedMemory => {
                let size = self.sources.shm.to_string();
                mount_tmpfs("1777", &[("size", &size)], flags, Some(self.user_namespace()))
            }
            What::Memory => mount_tmpfs("0755", &[], flags, Some(self.user_namespace())),
            What::Empty => api_filesystems::empty(self.empty.as_ref(), mount),
            What::Sysfs => Filesystem::open("sysfs")?.mount(flags),
            What::Cgroup => Filesystem::open("cgroup2")?.flag("nsdelegate")?.mount(flags),
            What::MessageQueues => Filesystem::open("mqueue")?.mount(flags),
            What::Program => match self.sources.init_program {
                Some(program) => binds::copy_of(program, flags),
                None => Err(Error::io("open", "minimal init", Errno::NOENT)),
            },
            What::Host(path) => binds::copy_of(Path::new(path), flags),
            What::Again(path) | What::File(path) => {
                api_filesystems::again(&self.tree, Path::new(path), mount)
            }
            What::Root | What::Proc | What::Volumes | What::Binds => {
                unreachable!("made by `mount`")
            }
        }
    }

    fn user_namespace(&self) -> BorrowedFd<'a> {
        self.namespaces.user.as_fd()
    }
}
