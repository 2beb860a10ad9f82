//! `holm volume`.

mod create;
mod inspect;
mod ls;
mod rm;
mod set;

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb =
    Verb::new::<Volume>(Group::Host, "volume", "Make, list, limit and remove volumes of guests")
        .aliases(&["volumes"])
        .examples(
            "holm volume create pg\n\
             holm launch db --base debian13 -v pg:/var/lib/postgresql\n\
             holm volume ls\n\
             holm volume rm pg",
        );

/// Arguments.
#[derive(Debug, Args)]
pub struct Volume {
    #[command(subcommand)]
    verb: Verbs,
}

#[derive(Debug, Subcommand)]
enum Verbs {
    /// Make an empty volume
    #[command(alias = "add")]
    Create(create::Create),
    /// List the volumes
    #[command(alias = "list")]
    Ls(ls::Ls),
    /// Show all about a volume
    #[command(aliases = ["show", "info"])]
    Inspect(inspect::Inspect),
    /// Change the size limit of a volume
    Set(set::Set),
    /// Remove volumes that no guest has, with what is in them
    #[command(aliases = ["delete", "remove"])]
    Rm(rm::Rm),
}

impl Run for Volume {
    fn run(self, context: &Context) -> Outcome {
        match self.verb {
            Verbs::Create(verb) => verb.run(context),
            Verbs::Ls(verb) => verb.run(context),
            Verbs::Inspect(verb) => verb.run(context),
            Verbs::Set(verb) => verb.run(context),
            Verbs::Rm(verb) => verb.run(context),
        }
    }
}
