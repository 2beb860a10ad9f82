//! `holm thaw`.

use clap::Args;
use holm::guest::{self, Guest};
use holm::pool::Name;

use crate::context::Context;
use crate::output;
use crate::several::{self, Names};
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb = Verb::new::<Thaw>(Group::Guests, "thaw", "Resume frozen guests")
    .aliases(&["unpause", "resume", "unfreeze"])
    .examples("holm thaw web\nholm thaw --all");

/// Arguments.
#[derive(Debug, Args)]
pub struct Thaw {
    #[command(flatten)]
    names: Names,
}

impl Run for Thaw {
    fn run(self, context: &Context) -> Outcome {
        let all = self.names.is_all();
        self.names.including_ephemeral().each(context, |pool, name| {
            match guest::freeze(&Guest::new(pool, &Name::new(name)?), false) {
                // `--all` means those that run.
                Err(error) if all && several::is_not_running(&error) => {}
                done => done?,
            }
            Ok((String::new(), output::json(&output::Named { name: name.to_owned() })))
        })
    }
}
