//! Values that have a form of their own, each read from the text of one item.

mod access;
mod address;
mod capability;
mod cpu_set;
mod disk_size;
mod lan;
mod name;
mod path;
mod port_range;
mod ports;
mod publish;
mod rlimit;
mod signal;
mod ssh_key;
mod volume;

pub use access::access_rule;
pub(super) use address::address;
pub(super) use capability::capability;
pub(super) use cpu_set::cpu_set;
pub use disk_size::disk_size;
pub(super) use lan::lan;
pub(crate) use lan::same_network;
pub(super) use name::{hostname, interface, name, variable};
pub(super) use path::{device, mount, show_mount};
use port_range::port_range;
pub(super) use ports::ports;
pub(super) use publish::publish;
pub(super) use rlimit::{rlimit, rlimit_name, show_rlimit};
pub use signal::signals;
pub(super) use ssh_key::ssh_key;
pub(super) use volume::{show_volume, volume};
