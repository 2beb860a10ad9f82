//! The cgroups of one guest.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use holm_proto::path::READY;
use rustix::io::Errno;

use super::files::{self, open_dir};
use super::layout::Layout;
use super::pool::PoolCgroup;
use super::{Error, Result};

/// The delegated cgroup inside NAME.
pub(super) const GUEST: &str = "guest";
/// The leaf below it for processes that the host puts into a running guest.
const LEAF: &str = ".holm";
/// The run record; dies with the cgroup, which dies with the guest.
const RECORD: &str = "trusted.holm";

/// The cgroups of one guest.
#[derive(Debug)]
pub struct GuestCgroup {
    pub(super) pool: PoolCgroup,
    /// `<group>/NAME`, the same below every hierarchy.
    pub(super) path: String,
    pub(super) dir: OwnedFd,
    pub(super) guest: OwnedFd,
    pub(super) v1_tasks: Vec<OwnedFd>,
    /// It was made without one in any v1 hierarchy, so that none has to be looked for.
    pub(super) only_v2: bool,
}

impl GuestCgroup {
    pub(super) fn layout(&self) -> &Layout {
        self.pool.layout()
    }

    /// Opens the cgroups of a guest; `None` if there are none, so the guest is not running.
    pub fn open(pool: &PoolCgroup, name: &str) -> Result<Option<Self>> {
        let path = format!("{}/{name}", pool.name());
        let root = pool.layout().open_v2()?;
        let dir = match open_dir(&root, &path) {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return Ok(None),
            Err(e) => return Err(Error::io("open cgroup", &path, e)),
        };
        // A start killed between its two mkdirs left no `guest`; with one, the rest is like any other.
        let guest = match files::make_and_open(&dir, GUEST) {
            Ok(guest) => guest,
            // Removed since it was opened.
            Err(Errno::NOENT | Errno::NODEV) => return Ok(None),
            Err(e) => return Err(Error::io("open", format!("{path}/{GUEST}"), e)),
        };
        Ok(Some(Self {
            pool: pool.clone(),
            path,
            dir,
            guest,
            v1_tasks: Vec::new(),
            only_v2: false,
        }))
    }

    /// The cgroup that init is cloned into (`CLONE_INTO_CGROUP`).
    pub fn guest_fd(&self) -> BorrowedFd<'_> {
        self.guest.as_fd()
    }

    /// NAME itself: host-owned, carries the limits and the run record.
    pub fn dir_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// The `tasks` files of the v1 hierarchies that carry a limit of this guest; empty on pure v2, and for
    /// an opened (not created) guest. Init itself writes "0" into each, before it unshares its cgroup
    /// namespace: a parent that writes the pid waits for milliseconds, the process itself for 0.1 ms.
    pub fn v1_tasks(&self) -> &[OwnedFd] {
        &self.v1_tasks
    }

    /// A cgroup inside the guest for `exec` and `enter`. `guest` itself will not do, because a guest's
    /// systemd turns on controllers there (EBUSY). The guest may have done the same with this leaf, or made
    /// it threaded: when the clone fails with EBUSY, EOPNOTSUPP or ENODEV, try `fresh_leaf_fd`.
    pub fn leaf_fd(&self) -> Result<OwnedFd> {
        self.leaf(LEAF)
    }

    /// A leaf under a name that the guest could not foresee; it goes with the guest.
    pub fn fresh_leaf_fd(&self) -> Result<OwnedFd> {
        let mut random = [0; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
            .map_err(|e| Error::io("draw a random name for a leaf of", &self.path, e))?;
        self.leaf(&format!("{LEAF}-{:016x}", u64::from_ne_bytes(random)))
    }

    fn leaf(&self, name: &str) -> Result<OwnedFd> {
        files::make_and_open(&self.guest, name)
            .map_err(|e| Error::io("make cgroup", format!("{}/{GUEST}/{name}", self.path), e))
    }

    /// The run record, as `set_record` stored it.
    pub fn record(&self) -> Result<Option<Vec<u8>>> {
        files::xattr(&self.dir, RECORD)
            .map_err(|e| Error::io("read the run record on cgroup", &self.path, e))
    }

    /// Stores the run record on the guest's cgroup.
    pub fn set_record(&self, record: &[u8]) -> Result<()> {
        rustix::fs::fsetxattr(&self.dir, RECORD, record, rustix::fs::XattrFlags::empty())
            .map_err(|e| Error::io("store the run record on cgroup", &self.path, e))
    }

    /// Whether the guest is ready (the monitor records it).
    pub fn ready(&self) -> Result<bool> {
        let value = files::xattr(&self.dir, READY)
            .map_err(|e| Error::io("read whether it is ready from cgroup", &self.path, e))?;
        Ok(value.as_deref() == Some(b"1"))
    }
}
