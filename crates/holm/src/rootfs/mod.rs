//! Assembling a guest's mounts, in a mount namespace that the host owns.
//!
//! What is mounted here before the guest's init leaves for a mount namespace of its own is locked
//! there: guest root can neither unmount it nor clear its flags. The order that this needs is in
//! [`crate::launch`]; nothing here ever shows in the host's mount namespace.

mod api;
mod binds;
mod dev;
mod error;
mod files;
mod fsmount;
mod layers;
mod section;
mod tree;

pub use api::{BOOT_ID, mount_proc, mount_sys};
pub use binds::bind_all;
pub use dev::mount_dev;
pub use error::Error;
pub use files::{bind_program, bind_socket, lay_over, mount_run};
pub use fsmount::{Filesystem, clone_tree, memory};
pub use layers::{Layers, UPPER, Upper, WORK, mount_root};
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use section::with_section;
pub use tree::{Point, Tree};

/// The result of what this module does.
pub type Result<T> = std::result::Result<T, Error>;
