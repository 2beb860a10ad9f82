//! Making a process in a guest: the channel to it, its namespaces, credentials, resource limits,
//! scheduling and console; identifying processes; and calling programs for their output.
//!
//! `launch`, `exec`, `monitor`, `host` and `guest` use it; nothing here knows what a guest is made
//! of.

mod channel;
mod child;
mod clocks;
mod command_line;
mod console;
mod credentials;
mod error;
mod flock;
mod identity;
mod message;
mod namespaces;
mod program;
mod ptys;
mod recorded;
pub(crate) mod rlimits;
mod scheduling;

pub(crate) use channel::{ChildEnd, ParentEnd, channel, end_child};
pub(crate) use child::{ends_in_child, how_far, run_in_child};
pub(crate) use clocks::{TimeNamespace, reset_clocks};
pub(crate) use command_line::hide_values;
pub(crate) use console::open_console;
pub(crate) use credentials::GuestRoot;
pub use error::Error;
pub(crate) use error::exec_reason;
pub(crate) use flock::{Waiting, lock};
pub(crate) use identity::{ended_within, inode, kill_and_wait, own_pid, readable_within};
pub(crate) use message::Step;
pub(crate) use namespaces::{
    HostNamespaces, PidNamespaceGuard, in_pid_namespace, unshare_mounts, write_id_maps,
};
pub(crate) use program::{call_for_errors, call_for_output};
pub(crate) use ptys::HeldConsole;
pub(crate) use scheduling::{drop_scheduling_boost, reset_scheduling};

/// The result of what this module does.
pub type Result<T> = std::result::Result<T, Error>;
