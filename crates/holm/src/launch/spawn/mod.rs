//! Cloning a guest's init, and releasing it when everything is assembled.

mod assembled;
mod child;
mod filtered;
mod init;
mod spec;

pub use assembled::{Assembled, spawn};
pub use init::{Init, Stdio};
pub use spec::{FilterLoader, Running, Spec};
