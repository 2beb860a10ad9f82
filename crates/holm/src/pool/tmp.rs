//! `tmp/`: guests that are being created or removed, and what a look at the host needs.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use super::error::{Error, Result};
use super::files::remove_tree;
use super::root::Pool;
use crate::failed::is_there;

impl Pool {
    /// Makes `tmp/`.
    pub fn make_tmp(&self) -> Result<()> {
        let tmp = self.root().join("tmp");
        match fs::DirBuilder::new().mode(0o700).create(&tmp) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(Error::io("make the directory", &tmp, error))
            }
            _ => Ok(()),
        }
    }

    /// Removes what killed commands have left in `tmp/`. The names end in the process ids of the
    /// commands.
    pub fn clean_tmp(&self) {
        let Ok(entries) = fs::read_dir(self.root().join("tmp")) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let ours = ["new-", "rm-", "probe-"].iter().any(|prefix| name.starts_with(prefix));
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
