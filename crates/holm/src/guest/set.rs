use super::change_network::{AtOnce, change_network, restore};
use super::check_settings::check_settings;
use super::error::{Error, Result};
use super::handle::{Guest, LockedGuest};
use super::limits::limits;
use super::reconcile::reconcile;
use super::running::RunningGuest;
use crate::config::{self, Change, Config, Effect, edit_text};
use crate::disk::limit::image::Fitted;
use crate::pool::Name;
use crate::step;
use crate::store;

/// The outcome of a change of settings.
#[derive(Debug)]
pub struct Changed {
    /// The keys whose values have changed, and when the change takes effect.
    pub keys: Vec<(String, Effect)>,
    /// Whether the guest runs; then what takes effect at once has done so.
    pub running: bool,
}

/// Changes settings of a guest, and applies to a running one what can take effect at once.
pub fn set(guest: &Guest<'_>, changes: &[Change]) -> Result<Changed> {
    let locked = guest.lock()?;
    let before = config::load(&guest.config_path())?;
    let after = edit_text(&before, changes)?;
    replace_locked(&locked, &before, &after)
}

/// Replaces guest.toml by `after`, unless it is no longer `before`.
pub fn replace(guest: &Guest<'_>, before: &str, after: &str) -> Result<Changed> {
    let locked = guest.lock()?;
    if config::load(&guest.config_path())? != before {
        return Err(Error::EditedMeanwhile(guest.name().clone()));
    }
    replace_locked(&locked, before, after)
}

fn replace_locked(guest: &LockedGuest<'_>, before: &str, after: &str) -> Result<Changed> {
    let (pool, path) = (guest.pool(), guest.config_path());
    let new = config::parse(after, &path.to_string_lossy())?;
    // The old text may be invalid, and this change the correction.
    let old = config::parse(before, "").unwrap_or_default();
    check_settings(guest, &old, &new)?;
    let other_base = new.base != old.base;
    // Until guest.toml names the new base, nothing else keeps it from being removed.
    let _pin = if other_base { Some(store::pin(pool, &Name::new(&new.base)?)?) } else { None };
    step::done("set-base");
    let mut running = reconcile(guest)?;
    let network = running.as_ref().map(|running| running.record.network.clone());
    let limited = match &running {
        Some(running) if limits(&old) != limits(&new) => running.cgroup.set_limits(&limits(&new)),
        _ => Ok(()),
    };
    let bounded =
        limited.map_err(Error::from).and_then(|()| bound(guest, &old, &new, running.as_ref()));
    let written = bounded.and_then(|fitted| {
        let at_once = match &mut running {
            Some(running) => change_network(guest, running, &old, &new)?,
            None => AtOnce::default(),
        };
        guest.pool().write(&path, after)?;
        Ok((fitted, at_once))
    });
    if let (Err(_), Some(running), Some(network)) = (&written, &mut running, network) {
        // A refused change must have no effect. An error of this is less telling than the first.
        let _ = running.cgroup.set_limits(&limits(&old));
        let _ = restore(guest, running, network);
    }
    if written.is_err() {
        let _ = bound(guest, &new, &old, running.as_ref());
    }
    let mut keys = config::changed(&old, &new);
    let (fitted, at_once) = written?;
    let is_rate = |key: &str| matches!(key, "net.reserve" | "net.share" | "net.cap");
    let is_access = |key: &str| matches!(key, "net.deny" | "net.allow");
    for (key, effect) in &mut keys {
        if fitted == Fitted::AtNextStart && key.starts_with("disk.") {
            *effect = Effect::NextStart;
        } else if at_once.addresses && key == "net.address" {
            *effect = Effect::Live;
        } else if (!at_once.rates && is_rate(key)) || (!at_once.access && is_access(key)) {
            *effect = Effect::NextStart;
        }
    }
    Ok(Changed { keys, running: running.is_some() })
}

/// Limits the guest's private layer as the new settings say.
fn bound(
    guest: &LockedGuest<'_>,
    old: &Config,
    new: &Config,
    running: Option<&RunningGuest>,
) -> Result<Fitted> {
    if old.disk == new.disk {
        return Ok(Fitted::Now);
    }
    let Some(running) = running else {
        let ids = guest.ids(new.security.nesting)?;
        guest.place(ids).ready(&new.disk)?;
        return Ok(Fitted::Now);
    };
    Ok(guest.place(running.record.ids).change(&new.disk)?)
}
