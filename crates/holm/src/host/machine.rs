use std::path::{Path, PathBuf};

use super::finding::Answer;
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

    /// The scratch directory, or why there is none.
    pub(super) fn scratch(&self) -> Result<&Scratch, &str> {
        self.scratch.as_ref().map_err(String::as_str)
    }

    /// The answer of a probe that needs the scratch directory. Without one it says nothing of the
    /// feature: a full disk is no reason to take the kernel for too old.
    pub(super) fn try_out(&self, probe: impl FnOnce(&Scratch) -> Result<String, String>) -> Answer {
        match self.scratch() {
            Ok(scratch) => Answer::from(probe(scratch)),
            Err(why) => Answer::Untried(why.to_owned()),
        }
    }
}
