use std::path::{Path, PathBuf};

use super::scratch::Scratch;

/// What the probes look at besides the kernel.
#[derive(Debug)]
pub(super) struct Machine {
    /// The Holm root, or its nearest parent directory that exists.
    pub(super) root: PathBuf,
    /// A directory on the root's filesystem, or why there is none.
    scratch: Result<Scratch, String>,
}

impl Machine {
    pub(super) fn new(root: &Path) -> Self {
        let existing = root.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
        Self { root: existing.to_owned(), scratch: Scratch::new(existing) }
    }

    /// The scratch directory, for probes that can say no more without one.
    pub(super) fn scratch(&self) -> Result<&Scratch, String> {
        self.scratch.as_ref().map_err(Clone::clone)
    }
}
