use std::path::PathBuf;

use crate::pool::{Name, Pool};

/// Where this process makes a volume.
pub(super) fn new_dir(pool: &Pool, name: &Name) -> PathBuf {
    pool.root().join("tmp").join(format!("new-volume-{name}-{}", std::process::id()))
}
