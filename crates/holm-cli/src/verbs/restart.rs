//! `holm restart`.

use std::time::Duration;

use clap::Args;
use holm::config;
use holm::guest::{self, Guest};
use holm::pool::Name;

use crate::context::Context;
use crate::ready::Ready;
use crate::several::Names;
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb =
    Verb::new::<Restart>(Group::Guests, "restart", "Stop guests if they run, and start them")
        .aliases(&["reboot"])
        .examples("holm restart web\nholm restart --all --timeout 10s");

/// Arguments.
#[derive(Debug, Args)]
pub struct Restart {
    #[command(flatten)]
    names: Names,
    #[command(flatten)]
    ready: Ready,
    /// Kill after this time [default: stop.timeout of the guest, 30s]
    #[arg(long, short, alias = "time", value_name = "TIME", value_parser = config::duration)]
    #[arg(allow_negative_numbers = true)]
    timeout: Option<Duration>,
}

impl Run for Restart {
    fn run(self, context: &Context) -> Outcome {
        self.names.each(context, |pool, name| {
            let guest = Name::new(name)?;
            guest::restart(&Guest::new(pool, &guest), self.timeout)
                .map_err(|error| self.ready.explain(error, &guest))?;
            self.ready.wait(pool, &guest)
        })
    }
}
