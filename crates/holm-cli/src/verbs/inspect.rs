//! `holm inspect`.

use clap::Args;
use holm::Code;
use holm::config::{self, Effective, Source};
use holm::guest::Guest;

use crate::context::{self, Context};
use crate::failure::Failure;
use crate::output;
use crate::table::{self, Cell};
use crate::term;
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb = Verb::new::<Inspect>(
    Group::Settings,
    "inspect",
    "Show a guest's settings: from guest.toml, or by default",
)
.aliases(&["show", "get"])
.examples(
    "holm inspect web                # all settings\n\
     holm inspect web memory         # those of a group\n\
     holm inspect web memory.limit   # one value, for scripts\n\
     holm inspect web --json",
);

/// Arguments.
#[derive(Debug, Args)]
pub struct Inspect {
    /// The guest
    name: String,
    /// A key, or a group of keys
    key: Option<String>,
}

impl Run for Inspect {
    fn run(self, context: &Context) -> Outcome {
        let pool = context.look()?;
        let guest = context::guest(&pool, &self.name)?;
        let path = Guest::new(&pool, &guest).config_path();
        let text = config::load(&path)?;
        let mut all = config::effective(&text, &path.display().to_string())?;
        if let Some(key) = &self.key {
            let group = format!("{key}.");
            all.retain(|e| e.key == *key || e.key.starts_with(&group));
            if let [only] = all.as_slice()
                && only.key == *key
            {
                one(context, self.name, only.clone());
                return Ok(0);
            }
            if all.is_empty() && config::find(key).is_none() {
                return Err(Failure::new(Code::KeyUnknown, config::unknown(key)).object(key));
            }
        }
        if context.json {
            let settings = all.into_iter().map(output::Setting::from).collect();
            let settings = output::Settings { name: self.name, settings };
            term::print(&format!("{}\n", output::json(&settings)));
        } else {
            term::print(&table::table(
                &["KEY", "VALUE", "SOURCE"],
                &rows(&all),
                context.colour,
                context.width,
            ));
        }
        Ok(0)
    }
}

fn one(context: &Context, name: String, setting: Effective) {
    if context.json {
        let setting = output::OneSetting { name, setting: setting.into() };
        term::print(&format!("{}\n", output::json(&setting)));
    } else {
        term::print(&format!("{}\n", setting.text));
    }
}

fn rows(all: &[Effective]) -> Vec<Vec<Cell>> {
    all.iter()
        .map(|e| {
            let source = match (e.source, e.line) {
                (Source::File, Some(line)) => Cell::from(format!("guest.toml:{line}")),
                (Source::File, None) => Cell::from("guest.toml"),
                (Source::Default, _) => table::coloured("default", term::DIM),
            };
            let value = match e.source {
                Source::File => Cell::from(&e.text),
                Source::Default => table::coloured(&e.text, term::DIM),
            };
            vec![Cell::from(&e.key), value, source]
        })
        .collect()
}
