//! Every setting of a guest and where it comes from.

use serde_json::{Value, json};

use super::error::Error;
use super::key::{Effect, Key, Kind};
use super::keys::keys;
use super::parse::read;
use super::types::Config;
use super::units;

/// A key and the value in effect.
#[derive(Debug, Clone, PartialEq)]
pub struct Effective {
    /// Dotted name, with `*` replaced by a name of the user's (`env.LANG`).
    pub key: String,
    /// The value: sizes in bytes, times in seconds, null when nothing is set.
    pub value: Value,
    /// The value as it would be written, or the default's description.
    pub text: String,
    /// Where it comes from.
    pub source: Source,
    /// Line of the file that sets it, from 1.
    pub line: Option<usize>,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// It is not set.
    Default,
    /// The guest's `guest.toml`.
    File,
}

/// All values of a guest with this `guest.toml`, in the order of [`keys`].
pub fn effective(text: &str, origin: &str) -> Result<Vec<Effective>, Error> {
    let (config, entries) = read(text, origin)?;
    let mut all = Vec::new();
    for key in keys() {
        for name in names(&config, key) {
            let items = (key.show)(&config, key.variable(&name));
            let from = entries.iter().find(|entry| entry.key == name);
            let shown = match (items.is_empty(), key.kind.is_list()) {
                (true, _) => key.default.to_owned(),
                (false, true) => items.join(", "),
                (false, false) => items[0].clone(),
            };
            all.push(Effective {
                value: value(&key.kind, &items),
                text: shown,
                source: if from.is_some() { Source::File } else { Source::Default },
                line: from.map(|entry| text[..entry.span.start].matches('\n').count() + 1),
                key: name,
            });
        }
    }
    Ok(all)
}

/// The names that a key has in this guest: its own, or with `*` replaced by each name that
/// guest.toml has chosen (`env.LANG`).
fn names(config: &Config, key: &Key) -> Vec<String> {
    let Some((group, _)) = key.name.split_once(".*") else { return vec![key.name.to_owned()] };
    let chosen: Vec<&String> = match group {
        "env" => config.env.keys().collect(),
        "rlimits" => config.rlimits.keys().collect(),
        _ => config.services.iter().map(|s| &s.name).collect(),
    };
    chosen.into_iter().map(|name| key.name.replace('*', name)).collect()
}

/// The value as JSON.
fn value(kind: &Kind, items: &[String]) -> Value {
    if kind.is_list() {
        return json!(items);
    }
    let Some(text) = items.first() else { return Value::Null };
    match kind {
        Kind::Bool => json!(text == "true"),
        Kind::FlagOrCount if text == "false" => json!(false),
        Kind::FlagOrCount | Kind::Count => json!(text.parse::<u64>().ok()),
        Kind::Size => json!(units::size(text).ok()),
        Kind::Cpus => json!(units::cpus(text).ok()),
        Kind::Rate => json!(units::rate(text).ok()),
        Kind::Time => json!(units::duration(text).ok().map(|t| t.as_secs_f64())),
        _ => json!(text),
    }
}

/// The keys whose values differ, and when each change takes effect.
pub fn changed(old: &Config, new: &Config) -> Vec<(String, Effect)> {
    let mut all = Vec::new();
    for key in keys() {
        let mut both = names(old, key);
        both.extend(names(new, key));
        both.sort();
        both.dedup();
        let show = |config, name: &str| (key.show)(config, key.variable(name));
        both.retain(|name| show(old, name) != show(new, name));
        all.extend(both.into_iter().map(|name| (name, key.effect)));
    }
    all
}
