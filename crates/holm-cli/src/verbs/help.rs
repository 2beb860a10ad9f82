//! `holm help`.

use clap::Args;

use super::{Group, Outcome, Run, Verb, find, overview};
use crate::context::Context;
use crate::failure::Failure;
use crate::{term, words};

pub const VERB: Verb = Verb::new::<Help>(Group::Host, "help", "Explain a verb, with examples")
    .examples(
        "holm help            # all verbs\nholm help run        # one verb\nholm help base import",
    );

/// Arguments.
#[derive(Debug, Args)]
pub struct Help {
    /// The verb
    verb: Vec<String>,
}

impl Run for Help {
    fn run(self, _: &Context) -> Outcome {
        let Some(name) = self.verb.first() else {
            term::print(&overview());
            return Ok(0);
        };
        let verb = find(name).ok_or_else(|| Failure::usage(words::unknown(name)))?;
        let mut root = crate::cli::root().subcommand(verb.clap());
        root.build();
        let mut command = root.find_subcommand_mut(verb.name);
        for word in &self.verb[1..] {
            command = command.and_then(|c| c.find_subcommand_mut(word));
        }
        let command = command
            .ok_or_else(|| Failure::usage(format!("there is no holm {}", self.verb.join(" "))))?;
        let help = command.render_long_help();
        term::print(&help.to_string());
        Ok(0)
    }
}
