//! A guest's private layer: what it has changed compared with its base.
//!
//! ```text
//! guests/NAME/disk/
//!   upper/    what the guest has written: the upper directory of its overlay
//!   work/     overlayfs's work directory
//!   image     what it has in common with others, after it was unified: an EROFS image in the
//!             composefs layout, of which the directory `tree` is the layer below `upper`
//!   objects   the list of the objects that this image refers to
//!   root/     with disk.kind = plain: the whole root, instead of the above (root.new/ while it is
//!             being copied)
//!   new       its guest was rebuilt, and has not run in it yet
//!   base      the base that this image was made for, and when that was imported
//!   charged   how many bytes of these objects are charged to its limit: those that its base does
//!             not have
//! ```
//!
//! A layer with limits has two more files beside it, of which the second may be instead of it:
//!
//! ```text
//! guests/NAME/
//!   limited   "project ID", when its files have this project id, or "image"
//!   disk.img  an ext4 with `upper`, `work` and spare files, where there is no project quota
//! ```
//!
//! A unification makes these anew beside it, in `guests/NAME/disk.new`, and exchanges the two.
//!
//! A layer on disk is a part of its guest's directory, and is made, renamed and removed with it. A
//! ephemeral guest has its layer in memory.

mod error;
mod layer;
pub mod limit;
mod limited;
mod plain;

pub use error::Error;
pub use layer::Layer;
pub use limited::Place;
pub use plain::make_missing;
