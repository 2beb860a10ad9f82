//! `holm wait`.

use std::time::Duration;

use clap::Args;
use holm::config;
use holm::guest::{self, Guest};
use holm::pool::Name;

use super::status;
use crate::context::Context;
use crate::output;
use crate::several::Names;
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb =
    Verb::new::<Wait>(Group::Guests, "wait", "Wait until guests have ended, and say how")
        .examples("holm wait build\nholm wait --timeout 10min build test");

/// Arguments.
#[derive(Debug, Args)]
pub struct Wait {
    #[command(flatten)]
    names: Names,
    /// Give up after this time
    #[arg(long, short, value_name = "TIME", value_parser = config::duration)]
    #[arg(allow_negative_numbers = true)]
    timeout: Option<Duration>,
}

impl Run for Wait {
    fn run(self, context: &Context) -> Outcome {
        self.names.looking().each(context, |pool, name| {
            let last = guest::wait(&Guest::new(pool, &Name::new(name)?), self.timeout)?;
            let how = status::ended_text(&last);
            Ok((
                format!("{name}: {how}"),
                output::json(&output::Waited { name: name.to_owned(), last_run: (&last).into() }),
            ))
        })
    }
}
