//! `holm help`.

use clap::Args;
use holm::Code;

use crate::context::Context;
use crate::failure::Failure;
use crate::overview::overview;
use crate::verb::{Explain, Group, Outcome, Table, Verb};
use crate::{global, other_tools, term};

pub const VERB: Verb =
    Verb::explaining::<Help>(Group::Host, "help", "Explain a verb, with examples").examples(
        "holm help            # all verbs\nholm help run        # one verb\nholm help base import",
    );

/// Arguments.
#[derive(Debug, Args)]
pub struct Help {
    /// The verb
    verb: Vec<String>,
}

impl Explain for Help {
    fn run(self, _: &Context, table: Table) -> Outcome {
        let Some(name) = self.verb.first() else {
            term::print(&overview(table));
            return Ok(0);
        };
        let verb = table.find(name).ok_or_else(|| other_tools::unknown_verb(table, name))?;
        let mut root = global::command().subcommand(verb.clap());
        root.build();
        let mut command = root.find_subcommand_mut(verb.name);
        for name in &self.verb[1..] {
            command = command.and_then(|c| c.find_subcommand_mut(name));
        }
        let command = command.ok_or_else(|| {
            let verb = self.verb.join(" ");
            Failure::usage(format!("there is no holm {verb}")).code(Code::VerbUnknown).object(verb)
        })?;
        let help = command.render_long_help();
        term::print(&help.to_string());
        Ok(0)
    }
}
