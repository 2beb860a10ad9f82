//! Volumes: directories of the Holm root that outlive guests.
//!
//! ```text
//! volumes/NAME/
//!   volume.toml   when and of what it was made; its size limit and project id
//!   data/         what guests see at the target, with ids from 0 on as in a private layer
//!   work/         of one with a size limit: where files are made anew to get the project id
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
mod limit;
mod make;
mod meta;
mod pin;
mod remove;
mod set;
mod users;
mod volumes;

pub use error::Error;
pub use make::{create, make_missing};
pub use meta::Meta;
pub use pin::Pin;
pub use remove::remove;
pub use set::set;
pub use users::{Users, users};
pub use volumes::{Volume, list, load, mounts, used};

/// A result with this module's error.
pub type Result<T> = std::result::Result<T, Error>;
