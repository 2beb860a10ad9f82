//! Cleaning up after imports, removals and unifications that were killed, and `holm gc`.

use std::fs;

use super::directory;
use super::error::Error;
use super::gc::{self, Collected};
use super::staging::{NEW, OLD};
use crate::failed::{is_link, is_there};
use crate::pool::{Pool, remove_tree};

/// Removes what killed commands have left, and collects unused objects now. `None` if that has to
/// wait for an import or a unification.
pub fn gc(pool: &Pool) -> Result<Option<Collected>, Error> {
    let dir = pool.objects_dir();
    if is_link(&dir)? {
        return Ok(Some(Collected::default()));
    }
    gc::request(pool)?;
    let collected = clean(pool)?;
    let is_due = is_there(&dir.join(gc::DUE))?;
    Ok(if is_due { None } else { Some(collected) })
}

/// Removes what killed imports and removals have left. Every command on bases calls it first, so it
/// is cheap if there is nothing to do.
pub(super) fn clean(pool: &Pool) -> Result<Collected, Error> {
    let bases = directory::bases(pool);
    let all = directory::lock_all(pool)?;
    let mut found = false;
    for entry in fs::read_dir(&bases).map_err(Error::io("read", &bases))? {
        let entry = entry.map_err(Error::io("read", &bases))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with(NEW) && !name.starts_with(OLD) {
            continue;
        }
        if directory::lock(&entry.path()).is_ok() {
            found = true;
            remove_tree(&entry.path())?;
        }
    }
    drop(all);
    if found {
        gc::request(pool)?;
    }
    gc::collect(pool)
}
