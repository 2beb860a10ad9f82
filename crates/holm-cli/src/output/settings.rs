use holm::config::{self, Effect, Effective};
use serde::Serialize;
use serde_json::Value;

/// A guest's settings.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Settings {
    /// The guest.
    pub name: String,
    /// All its settings, or those of a group, in the order of `holm help set`.
    pub settings: Vec<Setting>,
}

/// A guest's setting that was asked for by its key.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OneSetting {
    /// The guest.
    pub name: String,
    #[serde(flatten)]
    pub setting: Setting,
}

/// One setting.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Setting {
    /// Dotted name, with a user's own name in the place of `*`: `env.LANG`.
    pub key: String,
    /// The value by the key's type: bytes, seconds, number of CPUs, text, boolean, or an array of
    /// texts. Null where nothing is set.
    pub value: Value,
    /// The value as it would be written in guest.toml, or what the default means.
    pub text: String,
    /// Where it comes from.
    pub source: Source,
    /// The line of guest.toml that sets it, from 1; null for a default.
    pub line: Option<usize>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// guest.toml
    File,
    /// not set, so that the default applies
    Default,
}

/// A change of settings.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Changed {
    /// The guest.
    pub name: String,
    /// Whether it runs.
    pub running: bool,
    /// The changed keys that are in effect now, or would be if it ran.
    pub in_effect: Vec<String>,
    /// The changed keys that take effect at the next start.
    pub at_next_start: Vec<String>,
}

impl From<Effective> for Setting {
    fn from(setting: Effective) -> Self {
        let Effective { key, value, text, source, line } = setting;
        let source = match source {
            config::Source::File => Source::File,
            config::Source::Default => Source::Default,
        };
        Self { key, value, text, source, line }
    }
}

impl Changed {
    /// What `holm set` has changed.
    pub fn new(name: String, changed: &holm::guest::Changed) -> Self {
        let keys = |effect| {
            let with_it = changed.keys.iter().filter(move |key| key.1 == effect);
            with_it.map(|key| key.0.clone()).collect()
        };
        Self {
            name,
            running: changed.running,
            in_effect: keys(Effect::Live),
            at_next_start: keys(Effect::NextStart),
        }
    }
}
