//! Huge pages: the host sets some memory apart for its own programs (`vm.nr_hugepages`). No memory
//! limit counts them, and whoever comes first gets them.

use std::os::fd::OwnedFd;

use super::files::{open_dir, write_file};
use super::{Error, Result, walk};

/// Refuses all that is in the cgroup `name` below the root of v2, which has the controller enabled,
/// the host's huge pages of each size: reservations (`hugetlb.2MB.rsvd.max`), so that mmap(2) fails
/// and programs take usual pages, and pages that were not reserved (`hugetlb.2MB.max`). See
/// "`HugeTLB`" in the kernel's admin-guide/cgroup-v2.rst. Transparent huge pages are usual memory,
/// and stay.
pub(super) fn refuse_huge_pages(root: &OwnedFd, name: &str) -> Result<()> {
    let dir = open_dir(root, name).map_err(|e| Error::io("open cgroup", name, e))?;
    for file in walk::files(&dir).map_err(|e| Error::io("list cgroup", name, e))? {
        if file.starts_with("hugetlb.") && file.rsplit('.').next() == Some("max") {
            let written = write_file(&dir, &file, "0");
            written.map_err(|e| Error::io("write", format!("{name}/{file}"), e))?;
        }
    }
    Ok(())
}
