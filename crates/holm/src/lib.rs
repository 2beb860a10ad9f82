#![forbid(unsafe_code)]
//! The engine of Holm: everything that `holm` does, without a terminal or a command line.

pub mod cgroup;
pub mod config;
mod disk;
pub mod exec;
mod failed;
pub mod flows;
pub mod guest;
pub mod host;
mod launch;
pub mod monitor;
pub mod net;
pub mod pool;
mod process;
pub mod record;
pub mod rootfs;
pub mod security;
pub mod step;
pub mod store;
mod system;
pub mod terminal;
pub mod volume;

pub use failed::{Code, Coded, Details, Failed};
