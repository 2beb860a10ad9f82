//! The cgroups of one guest.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use holm_proto::path::{READY, STATUS};
use rustix::io::Errno;

use super::files::{self, open_dir};
use super::layout::Layout;
use super::pool::PoolCgroup;
use super::{Error, Result};

/// The delegated cgroup inside `<pool>/NAME`.
pub(super) const GUEST: &str = "guest";
/// The leaf below it, for commands run by `exec`.
const LEAF: &str = ".holm";
/// The attribute with the run record, which disappears with the cgroup.
const RECORD: &str = "trusted.holm";

/// The cgroups of one guest.
#[derive(Debug)]
pub struct GuestCgroup {
    pub(super) pool: PoolCgroup,
    /// `<pool>/NAME`, the same in every hierarchy.
    pub(super) path: String,
    pub(super) dir: OwnedFd,
    pub(super) guest: OwnedFd,
    pub(super) v1_tasks: Vec<OwnedFd>,
    /// It was made in no v1 hierarchy, so there is none to look for.
    pub(super) only_v2: bool,
}

impl GuestCgroup {
    pub(super) fn layout(&self) -> &Layout {
        self.pool.layout()
    }

    /// Opens the cgroups of a guest; `None` if there are none, because the guest does not run.
    pub fn open(pool: &PoolCgroup, name: &str) -> Result<Option<Self>> {
        let path = format!("{}/{name}", pool.name());
        let root = pool.layout().open_v2()?;
        let dir = match open_dir(&root, &path) {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return Ok(None),
            Err(e) => return Err(Error::io("open cgroup", &path, e)),
        };
        // A start that was killed between its two mkdirs has left no `guest`. Making it now avoids
        // a special case.
        let guest = match files::make_and_open(&dir, GUEST) {
            Ok(guest) => guest,
            // It has been removed since it was opened.
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

    /// `<pool>/NAME` itself, which the host owns. It has the limits and the run record.
    pub fn dir_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// The `tasks` files of the v1 hierarchies that carry a limit of this guest. There are none on
    /// pure v2, or if this was opened and not created. Init itself writes "0" into each before it
    /// unshares its cgroup namespace: that takes it
    /// 0.1 ms, but another process that writes its pid would wait for milliseconds.
    pub fn v1_tasks(&self) -> &[OwnedFd] {
        &self.v1_tasks
    }

    /// The leaf for `exec` and `enter`. They cannot use `guest` itself, because a guest's systemd
    /// enables controllers there (EBUSY). If the clone fails with EBUSY, EOPNOTSUPP or ENODEV, the
    /// guest has enabled controllers in this leaf too, made it threaded or removed it: use
    /// `fresh_leaf_fd` instead.
    pub fn leaf_fd(&self) -> Result<OwnedFd> {
        self.leaf(LEAF)
    }

    /// A new leaf, with a name that the guest cannot predict. It is removed with the guest.
    pub fn fresh_leaf_fd(&self) -> Result<OwnedFd> {
        let mut random = [0; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
            .map_err(|e| Error::io("read a random name for a leaf of", &self.path, e))?;
        self.leaf(&format!("{LEAF}-{:016x}", u64::from_ne_bytes(random)))
    }

    fn leaf(&self, name: &str) -> Result<OwnedFd> {
        files::make_and_open(&self.guest, name)
            .map_err(|e| Error::io("make cgroup", format!("{}/{GUEST}/{name}", self.path), e))
    }

    /// The run record, as stored by `set_record`.
    pub fn record(&self) -> Result<Option<Vec<u8>>> {
        files::xattr(&self.dir, RECORD)
            .map_err(|e| Error::io("read the run record on cgroup", &self.path, e))
    }

    /// Stores the run record on the guest's cgroup.
    pub fn set_record(&self, record: &[u8]) -> Result<()> {
        rustix::fs::fsetxattr(&self.dir, RECORD, record, rustix::fs::XattrFlags::empty())
            .map_err(|e| Error::io("store the run record on cgroup", &self.path, e))
    }

    /// Whether the guest is ready, as recorded by its monitor.
    pub fn ready(&self) -> Result<bool> {
        let value = files::xattr(&self.dir, READY)
            .map_err(|e| Error::io("read the readiness on cgroup", &self.path, e))?;
        Ok(value.as_deref() == Some(b"1"))
    }

    /// What init last reported of itself (`STATUS=` of `sd_notify(3)`), as recorded by its monitor.
    /// The guest chooses the text.
    pub fn status_text(&self) -> Result<Option<String>> {
        let value = files::xattr(&self.dir, STATUS)
            .map_err(|e| Error::io("read the status text on cgroup", &self.path, e))?;
        Ok(value.map(|text| String::from_utf8_lossy(&text).into_owned()))
    }
}
