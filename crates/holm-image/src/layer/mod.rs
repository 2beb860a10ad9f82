//! Unification of a guest's private layer: files that it has in common with bases and other guests
//! become objects, and the guest gets a metadata image of its own.
//!
//! ```text
//! guests/NAME/disk/
//!   upper/     what the guest has changed since, and what is the guest's alone
//!   work/      overlayfs's work directory
//!   image      an EROFS image in the composefs layout; the layer is its directory `tree`
//!   objects    the list of the objects that it refers to
//! guests/NAME/digests
//!              the digests of files in `upper`, by inode; see `digests.rs`
//! ```
//!
//! The guest's root is then an overlay of `upper`, of `tree` in its image, and of the base. The
//! image needs no attribute of overlayfs in its directories: what `upper` says by opaque
//! directories, redirects and metacopies is written out, with entries in the image and whiteouts
//! in the new `upper`. So the image holds whatever is done to the layers above it, and a guest has
//! one image however often it is unified.
//!
//! [`prepare`] computes digests and stores objects, while guests run. [`Rewrite`] makes the new
//! layer of a guest that is stopped.

mod digests;
mod hash;
mod merge;
mod plan;
mod prepare;
mod rewrite;
mod upper;
mod view;

pub use digests::{Digests, Known};
pub use prepare::{Guest, Prepared, Rules, prepare};
pub(crate) use rewrite::has_identity;
pub use rewrite::{Rewrite, Rewritten};
