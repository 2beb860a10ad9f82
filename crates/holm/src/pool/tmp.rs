//! `tmp/`: guests that are being created or removed, files that are being written, and what a look
//! at the host needs.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::Result;
use super::files::{make_tmp, remove_tree, tmp_file};
use super::root::Pool;
use crate::failed::is_there;

impl Pool {
    /// Makes `tmp/`.
    pub fn make_tmp(&self) -> Result<()> {
        make_tmp(self.root())
    }

    /// The path of a file in `tmp/` that is to be moved to where it belongs: what a killed command
    /// leaves of it is removed by the next one.
    pub(crate) fn tmp_file(&self, name: &str) -> Result<PathBuf> {
        tmp_file(self.root(), name)
    }

    /// Removes what killed commands have left in `tmp/`. The names end in the process ids of the
    /// commands.
    pub fn clean_tmp(&self) {
        let Ok(entries) = fs::read_dir(self.root().join("tmp")) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let ours =
                ["new-", "rm-", "probe-", "file-"].iter().any(|prefix| name.starts_with(prefix));
            let pid = name.rsplit('-').next().and_then(|pid| pid.parse::<u32>().ok());
            let is_gone =
                |pid: u32| matches!(is_there(&Path::new("/proc").join(pid.to_string())), Ok(false));
            if !ours || !pid.is_none_or(is_gone) {
                continue;
            }
            drop(remove_tree(&path));
        }
    }
}
