//! `holm unset`.

use clap::Args;
use holm::config::Change;
use holm::guest::{self, Guest};
use holm::pool::Name;

use crate::context::Context;
use crate::settings;
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb =
    Verb::new::<Unset>(Group::Settings, "unset", "Put settings of a guest back to their defaults")
        .examples(
            "holm unset web memory.limit cpu.cap\nholm unset web net.publish\nholm unset web env",
        );

/// Arguments.
#[derive(Debug, Args)]
pub struct Unset {
    /// The guest
    name: String,
    /// Keys, or groups of keys
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
}

impl Run for Unset {
    fn run(self, context: &Context) -> Outcome {
        let wanted: Vec<Change> = self.keys.iter().map(|k| Change::unset(k)).collect();
        let guest = Name::new(&self.name)?;
        let changed = guest::set(&Guest::new(&context.pool()?, &guest), &wanted)?;
        settings::report(context, &guest, &changed);
        Ok(0)
    }
}
