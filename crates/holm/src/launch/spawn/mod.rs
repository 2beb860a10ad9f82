//! Making a guest's init: cloned, assembled around, released, executed.

mod assembled;
mod child;
mod init;

mod spec;

pub use assembled::{Assembled, spawn};
pub use init::{Init, Stdio};
pub use spec::{Running, Spec};
