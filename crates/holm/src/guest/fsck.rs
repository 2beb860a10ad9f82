//! Checking guests against their bases, and the store.

use std::fs;
use std::io;

use super::error::Result;
use super::handle::Guest;
use crate::disk::Place;
use crate::failed::in_one_line;
use crate::pool::{Name, Pool};
use crate::store::{self, Fsck, FsckOptions, Problem, Progress, Subject};

/// Checks everything that a Holm root has on the disk. Calls `progress` a few times a second.
pub fn fsck(
    pool: &Pool,
    options: &FsckOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Fsck> {
    let mut fsck = store::fsck(pool, options, progress)?;
    for name in pool.guests()? {
        if let Some((reason, remedy)) = look_at(&Guest::new(pool, &name)) {
            fsck.problems.push(Problem {
                subject: Subject::Guest(name.to_string()),
                reason,
                users: Vec::new(),
                repaired: false,
                remedy,
            });
        }
    }
    Ok(fsck)
}

/// What is wrong with a guest, and what to do.
fn look_at(guest: &Guest<'_>) -> Option<(String, String)> {
    let name = guest.name();
    let config = match guest.config() {
        Ok((_, config)) => config,
        // Removed since the directory was read.
        Err(_) if matches!(guest.dir().try_exists(), Ok(false)) => return None,
        Err(error) => return Some((in_one_line(&error), format!("holm edit {name}"))),
    };
    let base = match Name::new(&config.base).map(|base| store::load(guest.pool(), &base)) {
        Ok(Ok(base)) => base,
        Ok(Err(error)) => {
            let remedy = format!("import its base, or holm set {name} base=OTHER");
            return Some((in_one_line(&error), remedy));
        }
        Err(error) => return Some((error.to_string(), format!("holm edit {name}"))),
    };
    let layer = Place::new(guest.pool(), name, 0).look(&config.disk);
    if let Err(error) = layer.and_then(|layer| layer.image(&base.identity())) {
        return Some((in_one_line(&error), format!("holm set {name} base=OTHER")));
    }
    let disk = guest.dir().join("disk");
    let remedy = format!("restore {} from a backup", disk.display());
    for part in ["upper", "work"] {
        match fs::symlink_metadata(disk.join(part)) {
            Ok(found) if found.is_dir() => {}
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Some((format!("its private layer cannot be looked at: {error}"), remedy));
            }
            _ => return Some((format!("its private layer has no directory {part}"), remedy)),
        }
    }
    None
}
