//! From decided settings to a running init.
//!
//! ```text
//! launcher (host root)                      init (guest)
//!   unshare the mount namespace
//!   clone ────────────────────────────────▶ in new user, pid, uts, ipc namespaces and its cgroup
//! write init's pid and its id maps        enter the v1 cgroups, unshare cgroup and time namespaces
//!   in the host's mount namespace:          unshare the network namespace, loopback up
//!     mount the base's image, if need be
//!   mount root, /dev, /run; inject files
//!   mount /proc and its masked paths
//!                               ◀─ Ready ──
//!   set the guest's clocks                  host name, seccomp
//!   eth0; join init's net, ipc, cgroup
//!   mount /sys and its masked paths, binds
//!   pivot, return to the host's namespaces
//!   ─ Release ────────────────────────────▶ enter the time namespace
//!                                           guest root's credentials
//!                                           unshare the mount namespace: now every mount is locked
//!                                           console, capabilities
//!   ◀── end of file, or Failed ──────────── exec
//! ```
//!
//! One clone in all. The mounts are made in a mount namespace that the host's user namespace owns;
//! when init, in the guest's, takes a copy of it, the kernel locks every mount in that copy
//! (`mount_namespaces(7)`): guest root can neither unmount them nor clear their flags.
//!
//! The launcher's effective uid is the guest's base uid while the user namespace is made: the
//! kernel charges what a namespace's users own (inotify instances, keys) to its creator too, and
//! all guests would share the limit of uid 0.
//!
//! [`mod@assemble`] makes mounts, devices and network for a process that exists; [`spawn()`] clones
//! that process, and [`Assembled::release`] lets it execute its program.

pub mod assemble;
mod error;
mod spawn;

pub use assemble::Assembly;
pub use error::Error;
pub use spawn::{Assembled, FilterLoader, Init, Running, Spec, Stdio, spawn};

/// The result of what this module does.
pub type Result<T> = std::result::Result<T, Error>;
