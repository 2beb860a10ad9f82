//! The cgroup of a Holm root: the parent of those of its guests and monitors.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;

use super::files::{make, make_and_open, open_dir, write_file};
use super::huge_pages::refuse_huge_pages;
use super::layout::{Controller, Layout};
use super::{Error, Result, walk};

/// The monitors' cgroup. No guest's name begins with a dot.
const MONITOR: &str = ".monitor";
/// The file that enables controllers for a cgroup's children.
pub(super) const SUBTREE_CONTROL: &str = "cgroup.subtree_control";

/// The cgroup of a Holm root, `holm` or `holm-N`, which may or may not exist.
#[derive(Debug, Clone)]
pub struct PoolCgroup {
    layout: Arc<Layout>,
    name: String,
}

impl PoolCgroup {
    /// The cgroup of this name, on a host with these hierarchies.
    pub fn new(layout: Layout, name: String) -> Self {
        Self { layout: Arc::new(layout), name }
    }

    /// The host's hierarchies.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Its name. It is directly below the root of each hierarchy.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Opens it on v2. It is there as soon as a guest's is.
    pub fn open(&self) -> Result<OwnedFd> {
        let opened = open_dir(self.layout.open_v2()?, &*self.name);
        opened.map_err(|e| Error::io("open cgroup", &self.name, e))
    }

    /// The names of the guests that have a cgroup: they run, or have not been cleaned up.
    pub fn guests(&self) -> Result<Vec<String>> {
        let fail = |e| Error::io("list cgroup", &self.name, e);
        let children = match open_dir(self.layout.open_v2()?, &*self.name) {
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

    /// Opens the cgroup of the monitors, making it if it does not exist. It is outside of all
    /// guests' limits, and never frozen or killed with a guest.
    pub fn monitors(&self) -> Result<OwnedFd> {
        let root = self.layout.open_v2()?;
        let path = format!("{}/{MONITOR}", self.name);
        match open_dir(&root, &path) {
            Err(Errno::NOENT) => {
                self.make(&root)?;
                make_and_open(&root, &path)
            }
            result => result,
        }
        .map_err(|e| Error::io("make cgroup", path, e))
    }

    /// Removes it from every hierarchy. It must not have any guests.
    pub fn remove(&self) -> Result<()> {
        for root in std::iter::once(self.layout.v2_root()).chain(self.layout.v1_roots()?) {
            walk::remove_empty(root, &format!("{}/{MONITOR}", self.name))?;
            walk::remove_empty(root, &self.name)?;
        }
        Ok(())
    }

    /// Makes it on v2. Another start may be doing the same at the same time.
    pub(super) fn make(&self, root: &OwnedFd) -> Result<()> {
        make(root, &self.name).map_err(|e| Error::io("make cgroup", &self.name, e))?;
        self.prepare(root)
    }

    /// What the guests need of it. Controllers come last: that they are there shows a later start
    /// that the one which made it was not killed before it did all this. A hybrid host has none of
    /// them here, so nothing is done there.
    pub(super) fn prepare(&self, root: &OwnedFd) -> Result<()> {
        let common: Vec<_> = self.layout.v2_common().collect();
        if common.is_empty() {
            return Ok(());
        }
        if self.layout.v2_has_huge_pages() {
            // For this cgroup alone: its children count against it.
            let enabled = write_file(root, SUBTREE_CONTROL, "+hugetlb");
            enabled.map_err(|e| not_enabled(SUBTREE_CONTROL, e))?;
            refuse_huge_pages(root, &self.name)?;
        }
        self.enable_controllers(root, &common)
    }

    /// Enables controllers for its children. As long as they are enabled here, they cannot be
    /// disabled at the root (EBUSY), which systemd tries when it applies its units' settings; it
    /// tolerates the error.
    pub(super) fn enable_controllers(
        &self,
        root: &OwnedFd,
        controllers: &[Controller],
    ) -> Result<()> {
        let text = subtree_control(controllers);
        for file in [SUBTREE_CONTROL.to_owned(), format!("{}/{SUBTREE_CONTROL}", self.name)] {
            let mut written = write_file(root, &file, &text);
            if written == Err(Errno::NOENT) {
                // systemd has disabled them at the root between the two writes.
                written = write_file(root, SUBTREE_CONTROL, &text)
                    .and_then(|()| write_file(root, &file, &text));
            }
            written.map_err(|e| not_enabled(&file, e))?;
        }
        Ok(())
    }
}

fn not_enabled(file: &str, error: Errno) -> Error {
    match error {
        Errno::BUSY => Error::Occupied { path: file.to_owned() },
        error => Error::io("enable controllers in", file, error),
    }
}

/// What to write to `cgroup.subtree_control` to enable controllers: `+cpu +memory`.
pub(super) fn subtree_control(controllers: &[Controller]) -> String {
    let names: Vec<_> =
        controllers.iter().map(|controller| format!("+{}", controller.name())).collect();
    names.join(" ")
}
