//! What a guest needs from Holm to run a distribution's own init: files injected before it starts,
//! its argv and environment.
//!
//! Nothing is ever written into a base. Boot files, which must be gone at the next start, are in
//! /run, a tmpfs that Holm mounts before init starts. A guest's identity is written once into its
//! private layer, where the SSH keys that its settings name are kept up to date. systemd's own
//! conditions skip nearly every unit that cannot work in a guest, given the capability bounding set
//! of [`crate::security`] and a read-only /sys, so the list of masked units is short.

mod boot_files;
mod environment;
mod file;
mod identity;
mod kind;
mod systemd;
#[cfg(test)]
mod tests;

pub use boot_files::{BootFiles, boot_files};
pub use environment::environment;
pub use file::{Content, File};
pub use identity::{Identity, host_name, random_id128, ssh_keys, uuid};
pub use kind::Kind;
