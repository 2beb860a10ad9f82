//! Checking the store: objects against their names, images against their objects.
//!
//! ```text
//! objects/.quarantine/abcdef...   an object whose content was not what its name says
//! ```
//!
//! While it reads, objects are locked shared: imports, unifications and starts go on, and a
//! collection is made later.

mod check;
mod found;
mod repair;
mod verify;

pub use found::{Damage, Fsck, FsckOptions, Looked, Problem, Subject};
pub use verify::fsck;
