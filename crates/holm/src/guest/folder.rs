use std::fs;
use std::path::{Path, PathBuf};

use holm_proto::ended::Note;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::repair::repaired;
use super::sweep::take_ids;
use super::{Error, Result};
use crate::Failed;
use crate::config::{self, Config};
use crate::pool::{self, Lock, Name, Pool};
use crate::record::{Ids, LastRun, RANGE};
use crate::store;

/// Where a guest's settings are.
pub fn config_path(pool: &Pool, name: &Name) -> PathBuf {
    pool.guest_dir(name).join("guest.toml")
}

/// A guest's settings: the text of its guest.toml, and what it means.
pub fn configured(pool: &Pool, name: &Name) -> Result<(String, Config)> {
    let path = config_path(pool, name);
    let text = fs::read_to_string(&path).map_err(|error| Error::io("read", &path, error))?;
    let config = config::parse(&text, &path.to_string_lossy())?;
    Ok((text, config))
}

/// The ids of a guest; taken now if it has none that are its own, as when `create` or `rename` was killed.
pub(super) fn ids(pool: &Pool, name: &Name, nesting: bool) -> Result<Ids> {
    let folder = pool.guest_dir(name);
    let noted = pool.read_ids(&folder);
    if let Some(ids) = noted
        && nesting == (ids.count > RANGE)
        && pool.own_ids(name, ids)
    {
        return Ok(ids);
    }
    let ids = take_ids(pool, || pool.keep_ids(name, nesting))?;
    pool::write(&folder.join("id"), &format!("{} {}\n", ids.context, ids.count))?;
    // LastRun: whatever stops this before, no other guest gets ids that this one's note still names.
    if let Some(noted) = noted {
        pool.release_ids(name, noted, Some(ids));
    }
    Ok(ids)
}

/// Writes how a guest's run ended.
pub(super) fn set_last(pool: &Pool, name: &Name, last: &LastRun) -> Result<()> {
    let text = serde_json::to_string(last).unwrap_or_default();
    Ok(pool::write(&pool.guest_dir(name).join("last"), &text)?)
}

/// How the last run of a guest ended; `None` before the first has.
pub(super) fn last(pool: &Pool, name: &Name) -> Option<LastRun> {
    serde_json::from_str(&fs::read_to_string(pool.guest_dir(name).join("last")).ok()?).ok()
}

/// Where the words stand in which a monitor noted the end of its guest's init, until somebody puts them into `last`.
pub(super) fn ended_path(pool: &Pool, name: &Name) -> PathBuf {
    pool.guest_dir(name).join("ended")
}

/// Those words, if they are about this run: a monitor writes them without a lock.
pub(super) fn ended(pool: &Pool, name: &Name, run: u64) -> Option<String> {
    let note = Note::parse(&fs::read_to_string(ended_path(pool, name)).ok()?)?;
    (note.run == run).then(|| note.ended.to_string())
}

/// Calls off the start that a monitor waits to make; says whether there was one.
pub(super) fn call_off(pool: &Pool, name: &Name) -> Result<bool> {
    match last(pool, name) {
        Some(last) if last.pending.is_some() => {
            set_last(pool, name, &LastRun { pending: None, ..last })?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Refuses a guest that runs or will by itself; `hint` is another way out than stopping it. The caller holds its lock.
fn at_rest(pool: &Pool, name: &Name, hint: &'static str) -> Result<()> {
    let name = name.clone();
    if repaired(pool, &name)?.is_some() {
        return Err(Error::Running { name, hint });
    }
    match last(pool, &name).and_then(|last| last.pending) {
        Some(pending) if pending.stands() => Err(Error::Restarting { name, hint }),
        _ => Ok(()),
    }
}

/// Removes a stopped guest with all it holds.
pub fn remove(pool: &Pool, name: &Name) -> Result<()> {
    let lock = pool.lock_guest(name)?;
    // A guest.toml that cannot be read protects nothing: removing is a way out of it.
    if configured(pool, name).is_ok_and(|(_, config)| config.protect) {
        return Err(Error::Protected(name.clone()));
    }
    at_rest(pool, name, ", or use `holm rm --force`")?;
    let folder = pool.guest_dir(name);
    let ids = pool.read_ids(&folder);
    let grave = pool.root().join("tmp").join(format!("rm-{name}-{}", std::process::id()));
    pool.make_tmp()?;
    move_to(&folder, &grave)?;
    if let Some(ids) = ids {
        pool.release_ids(name, ids, None);
    }
    let _ = fs::remove_dir_all(pool.guest_run_dir(name));
    pool.clean_tmp();
    pool::remove_tree(&grave)?;
    drop(lock);
    Ok(())
}

/// Gives a stopped guest another name.
pub fn rename(pool: &Pool, name: &Name, new: &Name) -> Result<()> {
    let _lock: Lock = pool.lock_guest(name)?;
    at_rest(pool, name, "")?;
    let _bases = store::pin_all(pool)?;
    let folder = pool.guest_dir(name);
    if pool.guest_dir(new).exists() {
        return Err(Error::Exists(new.clone()));
    }
    // First: links of a guest that is not there are given up only when they are old.
    let ids = pool.read_ids(&folder);
    if let Some(ids) = ids {
        pool.relabel_ids(ids, name, new)?;
    }
    if let Err(error) = move_to(&folder, &pool.guest_dir(new)) {
        if let Some(ids) = ids {
            pool.relabel_ids(ids, new, name)?;
        }
        return Err(match error {
            Error::Failed(Failed { source, .. })
                if source.kind() == std::io::ErrorKind::AlreadyExists =>
            {
                Error::Exists(new.clone())
            }
            error => error,
        });
    }
    let _ = fs::remove_dir_all(pool.guest_run_dir(name));
    Ok(())
}

/// Moves a folder to a path where nothing is.
pub(super) fn move_to(from: &Path, to: &Path) -> Result<()> {
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)
        .map_err(|errno| Error::io("move to", to, errno))
}
