//! Volumes: directories of the Holm root that outlive guests.
//!
//! ```text
//! volumes/NAME/
//!   volume.toml   when and of what it was made; its size limit and project id
//!   data/         what guests see at the target, with ids from 0 on as in a private layer
//!   work/         of one with a project id: where files are made anew to get it
//! ```
//!
//! One with a size limit, where the filesystem has no project quota, has instead of `data` and
//! `work`:
//!
//! ```text
//!   volume.img    an ext4 with `data`
//!   mount/        where that is mounted, only in mount namespaces that are not the host's; so
//!                 nothing has to unmount it, and guests that mount it have one superblock
//! ```
//!
//! A volume is made in `tmp/new-volume-NAME-PID`, and removed in `tmp/rm-volume-NAME-PID`; so
//! whatever is in `volumes/` is whole.
//!
//! Locks: `lock/volumes` is held while a volume is made. A [`Pin`] locks a volume's directory
//! shared, from the look at it until the guest's run record names it; a removal locks it
//! exclusively.

mod copy;
mod error;
mod image;
mod layout;
mod limit;
mod make;
mod meta;
mod pin;
mod quota;
mod remove;
mod set;
mod users;
mod volumes;

pub use error::Error;
pub use image::Fitted;
pub use make::{create, make_missing};
pub use meta::Meta;
pub use pin::Pin;
pub use remove::remove;
pub use set::set;
pub use users::{Users, users};
pub use volumes::{Files, Volume, list, load, mounts, used};

/// A result with this module's error.
pub type Result<T> = std::result::Result<T, Error>;
