//! `holm freeze`.

use clap::Args;
use holm::guest::{self, Guest};
use holm::pool::Name;

use crate::context::Context;
use crate::output;
use crate::several::{self, Names};
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb =
    Verb::new::<Freeze>(Group::Guests, "freeze", "Suspend all processes of guests")
        .aliases(&["pause", "suspend"])
        .examples("holm freeze web\nholm freeze --all");

/// Arguments.
#[derive(Debug, Args)]
pub struct Freeze {
    #[command(flatten)]
    names: Names,
}

impl Run for Freeze {
    fn run(self, context: &Context) -> Outcome {
        let all = self.names.is_all();
        self.names.including_ephemeral().each(context, |pool, name| {
            match guest::freeze(&Guest::new(pool, &Name::new(name)?), true) {
                // `--all` means those that run.
                Err(error) if all && several::is_not_running(&error) => {}
                done => done?,
            }
            Ok((String::new(), output::json(&output::Named { name: name.to_owned() })))
        })
    }
}
