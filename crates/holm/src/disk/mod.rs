//! A guest's private layer: what it has changed compared with its base.
//!
//! ```text
//! guests/NAME/disk/
//!   upper/    what the guest has written: the upper directory of its overlay
//!   work/     overlayfs's work directory
//! ```
//!
//! A layer on disk is a part of its guest's directory, and is made, renamed and removed with it. A
//! ephemeral guest has its layer in memory.

mod layer;

pub use layer::Layer;
