//! A guest's mounts, in a mount namespace that the host owns.
//!
//! [`TABLE`] lists them; [`Mounts`] makes them. What is mounted before the guest's init unshares a
//! mount namespace of its own is locked there: guest root can neither unmount it nor clear its
//! flags. The order that this needs is in [`crate::launch`]. Only what [`SharedImage`] mounts is
//! visible in the host's mount namespace.

mod api_filesystems;
mod binds;
mod dev;
mod disk_image;
mod error;
mod fsmount;
mod host_sources;
mod inject;
mod managed_block;
mod mounts;
mod overlay;
mod shared_image;
mod table;
mod tree;

pub use dev::check_device;
pub use disk_image::{DiskImage, LoopDevice};
pub use error::Error;
pub use fsmount::{Filesystem, clone_tree, mount_image, mount_tmpfs};
pub use host_sources::check_host_sources;
pub use inject::{bind_socket, inject};
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use managed_block::with_block;
pub use mounts::{Mounts, Namespaces, Sources, VolumeMounts};
pub use overlay::{Layers, PLAIN, UPPER, Upper, WORK, mount_disk_image, mount_root};
pub use shared_image::{SharedImage, remove_all_unused, unmount_unused};
pub use table::{BOOT_ID, Mount, Part, RestoredBy, TABLE, What, When, flag_names};
pub use tree::{Links, Point, Tree};

/// The result of what this module does.
pub type Result<T> = std::result::Result<T, Error>;
