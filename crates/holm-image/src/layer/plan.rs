//! What a new upper directory will contain.

use std::ffi::{CString, OsString};

use composefs::tree::Stat;

/// A directory of the new upper directory.
#[derive(Debug)]
pub struct PlanDir {
    pub stat: Stat,
    /// No image can hold its metadata, so the directory stays.
    pub pinned: bool,
    /// Names that hide what the base has.
    pub whiteouts: Vec<OsString>,
    /// Files that stay as they are: the old upper directory has them at the same path.
    pub kept: Vec<CString>,
    pub dirs: Vec<(OsString, PlanDir)>,
}

impl PlanDir {
    pub fn new(stat: Stat) -> Self {
        Self { stat, pinned: false, whiteouts: Vec::new(), kept: Vec::new(), dirs: Vec::new() }
    }

    /// Whether the image says all about it.
    pub fn is_empty(&self) -> bool {
        !self.pinned && self.whiteouts.is_empty() && self.kept.is_empty() && self.dirs.is_empty()
    }
}
