//! What follows from a change of a guest's settings.

use holm::config::Effect;
use holm::guest::Changed;
use holm::pool::Name;

use crate::context::Context;
use crate::{output, term};

/// Prints which settings are in effect already and which wait for the next start.
pub fn report(context: &Context, guest: &Name, changed: &Changed) {
    let names = |effect| -> Vec<&str> {
        changed.keys.iter().filter(|c| c.1 == effect).map(|c| c.0.as_str()).collect()
    };
    let (live, next) = (names(Effect::Live), names(Effect::NextStart));
    if context.json {
        let output = output::json(&output::Changed::new(guest.to_string(), changed));
        term::print(&format!("{output}\n"));
    } else if changed.running && !context.quiet {
        if !live.is_empty() {
            term::print(&format!("in effect now: {}\n", live.join(", ")));
        }
        if !next.is_empty() {
            let next = next.join(", ");
            term::print(&format!("at the next start: {next} (holm restart {guest})\n"));
        }
    }
}
