//! Reading the sources of bases.

mod apt;
pub mod archive;
pub mod busybox;
pub mod debootstrap;
pub mod directory;
mod program;
mod stream;

/// Called frequently with the progress: how much is done (bytes, or steps of an installation), how
/// much there is to do if that is known, and what is being worked on.
pub type Progress<'a> = dyn FnMut(u64, Option<u64>, &str) + 'a;
