//! A guest's private layer: what it has changed of its base.
//!
//! ```text
//! guests/NAME/disk/
//!   upper/    what the guest has written: the upper directory of its overlay
//!   work/     what overlayfs keeps for itself
//! ```
//!
//! A layer on disk is a part of its guest's directory: it is made before that directory gets its
//! name, and moves and goes with it. A guest of one command has its layer in memory.

mod layer;

pub use layer::Layer;
