//! An opened Holm root: its directories and locks, its instance number, and the id ranges of its
//! guests.
//!
//! ```text
//! /var/lib/holm/                  the root (--root, HOLM_ROOT), 0700
//!   objects/ab/cdef…              file bodies, named by digest
//!   bases/NAME/{base.toml,image}
//!   guests/NAME/                  guest.toml, id, disk/{upper,work}, log, last
//!   volumes/NAME/{volume.toml,data}
//!   ids/C                         context id C is taken; a symbolic link to ../guests/NAME
//!   lock/WHAT                     locks that concern the whole root
//!   tmp/                          guests that are being created or removed, files being written
//!   stage/{image,objects,disk,root}  mountpoints, used in private mount namespaces only
//! /run/holm/
//!   instances/N                   symbolic link to the root that has instance number N
//!   N/guests/NAME/monitor.sock
//!   N/images/                     mounted images of bases (`rootfs::SharedImage`)
//! ```

mod disk_usage;
mod error;
mod files;
mod ids;
mod instance;
mod lock;
mod name;
mod open;
mod root;
mod tmp;

pub(crate) use disk_usage::disk_usage;
pub use error::{Error, Result};
pub(crate) use files::{remove_tree, sync};
pub use instance::{DEFAULT_ROOT, MAX_INSTANCE};
pub use lock::Lock;
pub use name::{BadName, Name};
pub use root::Pool;
