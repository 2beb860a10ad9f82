//! Changing `guest.toml`, and saying what follows from it.

use holm::config::{self, Change, Effect};
use holm::pool::{self, Name, Pool};
use serde_json::json;

use crate::context::{self, Context};
use crate::failure::Failure;
use crate::term;
use crate::verbs::Outcome;

/// Makes changes to a guest.
pub fn change(context: &Context, name: &str, changes: &[Change]) -> Outcome {
    let pool = context.pool()?;
    let guest = context::guest(&pool, name)?;
    let before = config::load(&pool.guest_dir(&guest).join("guest.toml"))?;
    let after = config::edit_text(&before, changes)?;
    replace(context, &pool, &guest, &before, &after)
}

/// Puts `after`, which is right, in the place of `before`, unless somebody else was faster.
pub fn replace(context: &Context, pool: &Pool, guest: &Name, before: &str, after: &str) -> Outcome {
    let lock = pool.lock_guest(guest)?;
    let path = pool.guest_dir(guest).join("guest.toml");
    if config::load(&path)? != before {
        let message = format!("guest.toml of {guest} was changed by somebody else meanwhile");
        return Err(Failure::new(message).help("do it again"));
    }
    pool::write(&path, after)?;
    drop(lock);
    let new = config::parse(after, "guest.toml")?;
    // What was there may be nonsense that this change has mended.
    let old = config::parse(before, "guest.toml").unwrap_or_default();
    tell(context, guest, &config::changed(&old, &new));
    Ok(0)
}

fn tell(context: &Context, guest: &Name, changed: &[(String, Effect)]) {
    let names = |effect| -> Vec<&str> {
        changed.iter().filter(|c| c.1 == effect).map(|c| c.0.as_str()).collect()
    };
    let (live, next) = (names(Effect::Live), names(Effect::NextStart));
    if context.json {
        let told = json!({ "name": guest.as_str(), "live": live, "next_start": next });
        term::print(&format!("{told}\n"));
    }
}
