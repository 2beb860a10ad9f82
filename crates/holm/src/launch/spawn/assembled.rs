use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use holm_sys::process::{CloneResult, clone, flags};
use rustix::process::chdir;

use super::child;
use super::filtered::clone_filtered;
use super::init::Program;
use super::spec::{FilterLoader, Running, Spec};
use crate::launch::assemble::{
    attach_network, configure_network, join_namespaces, mount_host_side, mount_joined,
    namespaces_of,
};
use crate::launch::{Error, Result};
use crate::process::{self, ChildEnd, GuestRoot, HostNamespaces, ParentEnd, channel, rlimits};
use crate::step;

/// A guest that is assembled and whose init waits to be released. Dropping it kills init.
#[derive(Debug)]
pub struct Assembled(Option<Waiting>);

#[derive(Debug)]
struct Waiting {
    pidfd: OwnedFd,
    to_init: ParentEnd,
    program: String,
}

/// Clones a guest's init and assembles everything around it.
///
/// The caller must have one thread. On an error only the guest's cgroup and its network interface
/// may be left, and the caller removes them.
pub fn spawn(spec: &Spec<'_>) -> Result<Assembled> {
    if let Some(held) = spec.held {
        held.is_copied();
    }
    let host = HostNamespaces::save()?;
    let (to_init, to_launcher) = channel()?;
    let program = spec.init.prepare()?;
    chdir("/").map_err(|errno| Error::step("change to", "/", errno))?;
    process::unshare_mounts()?;
    step::done("mount-namespace");
    let result = clone_and_assemble(spec, &host, to_init, to_launcher, &program);
    host.restore()?;
    step::done("return");
    let (pidfd, to_init) = result?;
    let program = spec.init.program.clone();
    Ok(Assembled(Some(Waiting { pidfd, to_init, program })))
}

impl Assembled {
    /// Ends init, which is not released because of `error`, and returns the reason: an init that
    /// has failed by then has taken its network interface with it.
    pub fn abandon<E>(mut self, error: E) -> E
    where
        E: std::error::Error + From<Error> + 'static,
    {
        let Waiting { pidfd, to_init, .. } = self.0.take().expect("it waits until now");
        to_init.reason_of(&pidfd, &error).map_or(error, |reason| Error::from(reason).into())
    }

    /// Releases init, and returns when it has been executed: it may have ended by then.
    pub fn release(mut self) -> Result<Running> {
        let Waiting { pidfd, to_init, program } = self.0.take().expect("it waits until now");
        match to_init.release(&pidfd) {
            Ok(console) => {
                step::done("exec");
                Ok(Running { pidfd, console })
            }
            Err(error) => Err(match to_init.abandon(&pidfd, error) {
                process::Error::Exec { errno } => Error::Exec { program, errno },
                other => other.into(),
            }),
        }
    }
}

impl Drop for Assembled {
    fn drop(&mut self) {
        if let Some(waiting) = &self.0 {
            process::end_child(&waiting.pidfd);
        }
    }
}

fn clone_and_assemble(
    spec: &Spec<'_>,
    host: &HostNamespaces,
    to_init: ParentEnd,
    to_launcher: ChildEnd,
    program: &Program,
) -> Result<(OwnedFd, ParentEnd)> {
    let guest_root = GuestRoot::assume(spec.assembly.ids.base)?;
    // Init unshares its network namespace itself, which takes as long as all the mounts: the two go
    // on side by side.
    let wanted = flags::NEWUSER | flags::NEWPID | flags::NEWUTS | flags::NEWIPC;
    let cgroup = spec.cgroup.guest_fd();
    let cloned = match spec.filter {
        FilterLoader::Init => clone(wanted, Some(cgroup)),
        FilterLoader::Helper => clone_filtered(wanted, cgroup, &program.filter),
    };
    let (pid, pidfd) =
        match cloned.map_err(|error| Error::step("make the process of", "init", error))? {
            CloneResult::Child(child) => {
                // With a copy of the parent end init would not see it close when the launcher is
                // killed.
                drop(to_init);
                child::run(spec, &child, &to_launcher, program)
            }
            CloneResult::Parent { pid, pidfd } => (pid, pidfd),
        };
    if let Some(held) = spec.held {
        held.leave_to_init();
    }
    // As guest root: the owner of the user namespace may set the limits of what is in it.
    let limited = rlimits::set(Some(pid), spec.rlimits);
    drop((to_launcher, guest_root));
    step::done("clone");
    let assembled = limited
        .map_err(Error::from)
        .and_then(|()| assemble(spec, host, &to_init, pid, pidfd.as_fd()));
    match assembled {
        Ok(()) => Ok((pidfd, to_init)),
        Err(error) => Err(to_init.abandon(&pidfd, error)),
    }
}

/// Assembles everything around init, which waits for its release.
fn assemble(
    spec: &Spec<'_>,
    host: &HostNamespaces,
    to_init: &ParentEnd,
    pid: i32,
    init: BorrowedFd<'_>,
) -> Result<()> {
    let mut assembly = spec.assembly;
    (spec.record)(pid).map_err(Error::Record)?;
    process::write_id_maps(pid, assembly.ids)?;
    step::done("id-maps");
    // Not before the clone: init makes its namespaces meanwhile.
    let image = spec.image.map(|mount| host.in_mounts(mount)).transpose()?.transpose()?;
    assembly.sources.layers.shared = image.as_ref().map(AsFd::as_fd);
    let assembly = &assembly;
    step::done("image");
    let namespaces = namespaces_of(init)?;
    let guest_root = GuestRoot::assume(assembly.ids.base)?;
    let mounts = mount_host_side(assembly, &namespaces)?;
    to_init.wait_ready()?;
    drop(guest_root);
    step::done("wait-for-init");
    process::reset_clocks(pid)?;
    attach_network(assembly, init)?;
    let _guest_root = GuestRoot::assume(assembly.ids.base)?;
    join_namespaces(assembly, init)?;
    configure_network(assembly, &mounts)?;
    mount_joined(mounts)
}
