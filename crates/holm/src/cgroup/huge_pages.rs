//! Huge pages: the host sets some memory apart for its own programs (`vm.nr_hugepages`). No memory
//! limit counts them, and whoever comes first gets them.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::files::{open_dir, write_file};
use super::pool::PoolCgroup;
use super::{Error, Result, walk};

/// Refuses the guests of a Holm root all huge pages of the host, of each size: reservations
/// (`hugetlb.2MB.rsvd.max`), so that mmap(2) fails and programs take usual pages, and pages that
/// were not reserved (`hugetlb.2MB.max`). See "HugeTLB" in the kernel's
/// admin-guide/cgroup-v2.rst. Transparent huge pages are usual memory, and stay.
pub(super) fn refuse_huge_pages(pool: &PoolCgroup, root: &OwnedFd) -> Result<()> {
    let layout = pool.layout();
    if !layout.v2_has_huge_pages() {
        return Ok(());
    }
    let fail = |what| move |e: Errno| Error::io(what, pool.name(), e);
    pool.enable_at_root(root, "+hugetlb")?;
    let dir = open_dir(root, pool.name()).map_err(fail("open cgroup"))?;
    for file in walk::files(&dir).map_err(fail("list cgroup"))? {
        if file.starts_with("hugetlb.") && file.ends_with(".max") {
            write_file(&dir, &file, "0")
                .map_err(|e| Error::io("write", format!("{}/{file}", pool.name()), e))?;
        }
    }
    Ok(())
}
