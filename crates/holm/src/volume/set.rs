//! Changing the size limit of a volume.

use super::remove::require_unused;
use super::{Result, Volume, limit, load};
use crate::pool::{Name, Pool};
use crate::step;

/// Limits a volume to `size` bytes, or lifts its limit. Guests may run with it, unless it has never
/// had one: then all its files get a project id.
pub fn set(pool: &Pool, name: &Name, size: Option<u64>) -> Result<Volume> {
    let _lock = pool.lock("volumes")?;
    let mut meta = load(pool, name)?.meta;
    let dir = pool.volume_dir(name);
    meta.size = size;
    let write = |text: &str| pool.write(&dir.join("volume.toml"), text);
    match (meta.project, size) {
        (Some(project), _) => {
            write(&meta.to_text())?;
            step::done("volume-size-written");
            limit::apply(&dir, project, size)?;
        }
        (None, Some(_)) => {
            let project = limit::claim(pool, name)?;
            let _unused = require_unused(pool, name)?;
            limit::apply(&dir, project, size)?;
            step::done("volume-limited");
            meta.project = Some(project);
            write(&meta.to_text())?;
        }
        (None, None) => write(&meta.to_text())?,
    }
    load(pool, name)
}
