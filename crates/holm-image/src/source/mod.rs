//! The sources that bases are made from.

mod apt;
pub mod archive;
pub mod busybox;
pub mod debootstrap;
pub mod directory;

/// Called often with the progress of reading: how much is done (bytes, or steps of an
/// installation), of how much if that is known, and what is being worked on.
pub type Progress<'a> = dyn FnMut(u64, Option<u64>, &str) + 'a;
