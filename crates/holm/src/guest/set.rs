use super::prepare::limits;
use super::{Error, Result, repaired};
use crate::config::{self, Change, Effect, edit_text};
use crate::pool::{self, Name, Pool};
use crate::step;
use crate::store;

/// What came of a change of a guest's settings.
#[derive(Debug)]
pub struct Changed {
    /// The keys whose values are other than before, with when that takes effect.
    pub keys: Vec<(String, Effect)>,
    /// The guest runs: what takes effect at once has done so.
    pub running: bool,
}

/// Changes settings of a guest, and what can be changed in a running one at once.
pub fn set(pool: &Pool, name: &Name, changes: &[Change]) -> Result<Changed> {
    let _lock = pool.lock_guest(name)?;
    let before = config::load(&super::config_path(pool, name))?;
    let after = edit_text(&before, changes)?;
    replace_locked(pool, name, &before, &after)
}

/// Puts the text `after` in the place of `before`, unless the file is no longer that.
pub fn replace(pool: &Pool, name: &Name, before: &str, after: &str) -> Result<Changed> {
    let _lock = pool.lock_guest(name)?;
    if config::load(&super::config_path(pool, name))? != before {
        return Err(Error::EditedMeanwhile(name.clone()));
    }
    replace_locked(pool, name, before, after)
}

fn replace_locked(pool: &Pool, name: &Name, before: &str, after: &str) -> Result<Changed> {
    let path = super::config_path(pool, name);
    let new = config::parse(after, &path.to_string_lossy())?;
    // What was there may be nonsense that this change mends.
    let old = config::parse(before, "").unwrap_or_default();
    limits(&new).check_host(pool.cgroup()?.layout())?;
    let other_base = new.base != old.base;
    // Until the file names it nobody else can tell that it is needed.
    let _pin = if other_base { Some(store::pin(pool, &Name::new(&new.base)?)?) } else { None };
    step::done("set-base");
    let alive = repaired(pool, name)?;
    let limited = match &alive {
        Some(alive) if limits(&old) != limits(&new) => alive.cgroup.set_limits(&limits(&new)),
        _ => Ok(()),
    };
    let written = limited.map_err(Error::from).and_then(|()| Ok(pool::write(&path, after)?));
    if let (Err(_), Some(alive)) = (&written, &alive) {
        // What is refused changes nothing; the first error is the one to tell.
        let _ = alive.cgroup.set_limits(&limits(&old));
    }
    written?;
    Ok(Changed { keys: config::changed(&old, &new), running: alive.is_some() })
}
