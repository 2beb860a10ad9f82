//! Limits on what a directory takes on the disk: bytes, and inodes.
//!
//! Two backends, chosen by what the filesystem can:
//!
//! - *project quota*, of ext4 and XFS where it is enforced: every file below the directory has a
//!   project id, whose usage the filesystem bounds. `df` inside shows the limits, as the directory
//!   passes its id on.
//! - *an image*: an ext4 in a sparse file of the limit's length, on a loop device.
//!
//! [`claim`], [`apply`] and [`lift`] work on any directory with project quota; [`image`] makes and
//! resizes images.
//!
//! A project id is a number that is global to a filesystem. A guest's is the first id of its id
//! range, N·2^26 + C·65536 for instance number N and context id C: no other guest of the host has
//! it, and projects that people number by hand are far below. N·2^26 + 1 to N·2^26 + 65535 are
//! volumes', as there is no context id 0.

pub mod image;
mod limits;
mod project;
mod tag;

use std::path::Path;

use crate::Failed;

pub use limits::Limits;
pub use project::{apply, claim, is_applied, lift, used};

/// How limits are enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// By project quota.
    Project,
    /// By an ext4 of that size in a file.
    Image,
}

impl Backend {
    /// The one for what is in `directory`.
    pub fn of(directory: &Path) -> Result<Self, Failed> {
        Ok(if project::is_enforced(directory)? { Self::Project } else { Self::Image })
    }
}
