use holm_proto::path::NOTIFY;

use super::Assembly;
use crate::launch::Result;
use crate::rootfs::{self, Mounts, Namespaces, Part};
use crate::step;

/// Makes the mounts that need none of the guest's namespaces to be joined, and injects the guest's
/// files. The caller has assumed guest root's credentials.
pub fn mount_host_side<'a>(
    assembly: &Assembly<'a>,
    namespaces: &'a Namespaces,
) -> Result<Mounts<'a>> {
    let mut mounts = Mounts::new(assembly.sources, namespaces)?;
    step::done("root");
    mounts.make(Part::Dev)?;
    step::done("dev");
    mounts.make(Part::Files)?;
    rootfs::inject(mounts.tree(), assembly.files)?;
    if let Some(socket) = assembly.notify {
        rootfs::bind_socket(mounts.tree(), socket, NOTIFY)?;
    }
    step::done("files");
    mounts.make(Part::Proc)?;
    step::done("proc");
    Ok(mounts)
}

/// Makes the other mounts and pivots into the guest's root. The caller has joined the guest's
/// namespaces and assumed guest root's credentials.
pub fn mount_joined(mut mounts: Mounts<'_>) -> Result<()> {
    mounts.make(Part::Sys)?;
    step::done("sys");
    mounts.make(Part::Binds)?;
    step::done("binds");
    mounts.pivot()?;
    step::done("pivot");
    Ok(())
}
