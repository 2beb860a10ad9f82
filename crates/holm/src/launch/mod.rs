//! From decided settings to a running init.
//!
//! ```text
//! launcher (host root)                      init (guest)
//!   unshare the mount namespace
//!   clone ────────────────────────────────▶ in new user, pid, uts, ipc namespaces and its cgroup
//!   write id maps                           enter the v1 cgroups, unshare cgroup and time namespaces
//!   assemble root, /dev, /run, /proc        make the network namespace, loopback up
//!                                 ◀─ ready ─
//!   eth0; join init's net, ipc, cgroup      host name, seccomp
//!   mount /sys, masks, binds
//!   pivot, return to the host's namespaces
//!   ─ go ─────────────────────────────────▶ unshare the mount namespace: every mount is locked now
//!                                           identity, console, capabilities
//!   ◀── end of file, or what failed ─────── exec
//! ```
//!
//! One clone in all. The mounts are made in a mount namespace that the host's user namespace owns;
//! when init, in the guest's, takes a copy of it, the kernel locks every mount in that copy
//! (`mount_namespaces(7)`): guest root can neither unmount them nor clear their flags.
//!
//! The launcher's effective uid is the guest's base uid while the user namespace is made: the kernel
//! charges what a namespace's users own (inotify instances, keys) to its maker too, and a hundred
//! guests made by uid 0 would share one allowance.

mod child;
mod error;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use holm_proto::path::NOTIFY;
use holm_sys::process::{self as sys, Clone, Namespace, flags};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{chdir, fchdir, pivot_root};

pub use child::{Init, Stdio};
pub use error::Error;

use crate::cgroup::GuestCgroup;
use crate::config::{BindMount, Rlimit};
use crate::net;
use crate::pool::Pool;
use crate::process::{self, ChildEnd, GuestRoot, HostNamespaces, ParentEnd, channel, rlimits};
use crate::record::{Ids, Network};
use crate::rootfs::{self, Layers, Tree};
use crate::step;
use crate::system::File;
use child::Program;

/// The result of what this module does.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything a launch needs, decided.
#[expect(missing_debug_implementations, reason = "a function has no Debug")]
pub struct Spec<'a> {
    /// The root, for its folders.
    pub pool: &'a Pool,
    /// The guest's ids.
    pub ids: Ids,
    /// What the root is made of.
    pub layers: Layers<'a>,
    /// Where the guest's processes go.
    pub cgroup: &'a GuestCgroup,
    /// The guest's network.
    pub net: &'a Network,
    /// Size of /dev/shm in bytes.
    pub shm: u64,
    /// Resource limits of init, beyond the defaults.
    pub rlimits: &'a BTreeMap<String, Rlimit>,
    /// Host devices to pass.
    pub devices: &'a [PathBuf],
    /// Host folders and files to bind.
    pub binds: &'a [BindMount],
    /// Files to lay over the base before init runs.
    pub files: &'a [File],
    /// A program of the host to bind at `/dev/.holm/init`.
    pub minimal_init: Option<PathBuf>,
    /// A tmpfs on /run, as every init expects it.
    pub run: bool,
    /// A datagram socket to bind in the guest at [`NOTIFY`], for `sd_notify(3)`.
    pub notify: Option<&'a OwnedFd>,
    /// Process 1.
    pub init: Init,
    /// Told init's pid before init may run, so that a guest whose launcher is killed is known.
    pub record: &'a dyn Fn(i32) -> std::result::Result<(), String>,
}

/// A guest that runs.
#[derive(Debug)]
pub struct Running {
    /// Init's process id on the host.
    pub pid: i32,
    /// Init.
    pub pidfd: OwnedFd,
    /// The master of init's console, if it has one.
    pub console: Option<OwnedFd>,
}

/// A guest whose init waits for its release: everything else is made. Dropped, it ends.
#[derive(Debug)]
pub struct Assembled(Option<Waiting>);

#[derive(Debug)]
struct Waiting {
    pid: i32,
    pidfd: OwnedFd,
    launcher: ParentEnd,
    program: String,
}

/// Clones a guest's init and makes all that it needs.
///
/// The caller has one thread. On an error nothing is left of the guest but its cgroup and network
/// interface, which the caller made or names.
pub fn assemble(spec: &Spec<'_>) -> Result<Assembled> {
    let host = HostNamespaces::keep()?;
    let (launcher, guest) = channel()?;
    let program = spec.init.prepare()?;
    chdir("/").map_err(|errno| Error::step("change to", "/", errno))?;
    process::leave_host()?;
    step::done("mount-namespace");
    let result = clone_and_assemble(spec, launcher, guest, &program);
    host.restore()?;
    step::done("return");
    let (pid, pidfd, launcher) = result?;
    let program = spec.init.program.clone();
    Ok(Assembled(Some(Waiting { pid, pidfd, launcher, program })))
}

impl Assembled {
    /// Releases init, and returns when it has been executed: it may have ended by then.
    pub fn release(mut self) -> Result<Running> {
        let Waiting { pid, pidfd, launcher, program } = self.0.take().expect("it waits until now");
        match launcher.release(&pidfd) {
            Ok(console) => {
                step::done("exec");
                Ok(Running { pid, pidfd, console })
            }
            Err(error) => Err(match launcher.give_up(&pidfd, error) {
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
    launcher: ParentEnd,
    guest: ChildEnd,
    program: &Program,
) -> Result<(i32, OwnedFd, ParentEnd)> {
    let guest_root = GuestRoot::assume(spec.ids.base)?;
    // The network's, which takes as long as everything else, init makes itself meanwhile.
    let wanted = flags::NEWUSER | flags::NEWPID | flags::NEWUTS | flags::NEWIPC;
    let (pid, pidfd) = match sys::clone(wanted, Some(spec.cgroup.guest_fd()))
        .map_err(|error| Error::step("make the process of", "init", error))?
    {
        Clone::Child(child) => {
            // With a copy of the launcher's ends it would wait for itself when the launcher is killed.
            drop(launcher);
            child::run(spec, &child, &guest, program)
        }
        Clone::Parent { pid, pidfd } => (pid, pidfd),
    };
    // As guest root: the owner of the user namespace may set the limits of what is in it.
    let limited = rlimits::set(Some(pid), spec.rlimits);
    drop((guest, guest_root));
    step::done("clone");
    match limited.map_err(Error::from).and_then(|()| furnish(spec, &launcher, pid, pidfd.as_fd())) {
        Ok(()) => Ok((pid, pidfd, launcher)),
        Err(error) => Err(launcher.give_up(&pidfd, error)),
    }
}

/// Ids, mounts and network of a guest whose init waits for them.
fn furnish(spec: &Spec<'_>, launcher: &ParentEnd, pid: i32, init: BorrowedFd<'_>) -> Result<()> {
    (spec.record)(pid).map_err(Error::Record)?;
    process::map_ids(pid, spec.ids)?;
    step::done("id-maps");
    let user = sys::namespace(init, Namespace::User)
        .map_err(|error| Error::step("open the user namespace of", "init", error))?;
    let user = user.as_fd();
    let guest_root = GuestRoot::assume(spec.ids.base)?;
    let tree = Tree::new(rootfs::mount_root(spec.pool, spec.layers, user)?);
    step::done("root");
    rootfs::mount_dev(&tree, user, spec.ids.base, spec.shm, spec.devices)?;
    step::done("dev");
    if spec.run {
        rootfs::mount_run(&tree, user)?;
    }
    if let Some(program) = &spec.minimal_init {
        rootfs::bind_program(&tree, program)?;
    }
    rootfs::lay_over(&tree, spec.files)?;
    if let Some(socket) = spec.notify {
        rootfs::bind_socket(&tree, socket, NOTIFY)?;
    }
    step::done("files");
    let pids = sys::namespace(init, Namespace::Pid)
        .map_err(|error| Error::step("open the pid namespace of", "init", error))?;
    rootfs::mount_proc(&tree, pids.as_fd(), crate::security::MASKED_FILES)?;
    step::done("proc");
    launcher.wait_ready()?;
    drop(guest_root);
    step::done("wait-for-init");
    process::reset_clocks(pid)?;
    if net::has_veth(spec.net) {
        let stack = sys::namespace(init, Namespace::Net)
            .map_err(|error| Error::step("open the network namespace of", "init", error))?;
        net::attach(spec.net, stack.as_fd())?;
    }
    step::done("net-attach");
    let mut joined = flags::NEWIPC | flags::NEWCGROUP;
    let own_network = net::has_own_namespace(spec.net);
    if own_network {
        joined |= flags::NEWNET;
    }
    let _guest_root = GuestRoot::assume(spec.ids.base)?;
    sys::join(init, joined)
        .map_err(|error| Error::step("join the namespaces of", "init", error))?;
    if own_network {
        net::set_ping_group_range(spec.ids.base, spec.ids.count);
    }
    net::configure_inside(spec.net)?;
    step::done("net-inside");
    rootfs::mount_sys(&tree, crate::security::MASKED_DIRS, !own_network)?;
    step::done("sys");
    // Last, so that no link that the guest left at a target puts a bind where something of Holm's goes.
    rootfs::bind_all(&tree, spec.binds, user)?;
    step::done("binds");
    pivot(&tree)?;
    step::done("pivot");
    Ok(())
}

/// Makes the tree the root of this mount namespace, init's as well, and drops the host's.
fn pivot(tree: &Tree) -> Result<()> {
    fchdir(tree.root()).map_err(|errno| Error::step("enter", "the guest's root", errno))?;
    pivot_root(".", ".").map_err(|errno| Error::step("pivot into", "the guest's root", errno))?;
    unmount(".", UnmountFlags::DETACH)
        .map_err(|errno| Error::step("drop", "the host's root", errno))
}
