//! `holm monitor-ended`: what a guest's monitor becomes when init has ended.

use clap::Args;
use holm::guest::{self, Guest};
use holm::monitor::Ended;
use holm::pool::Name;

use crate::context::Context;
use crate::failure::Failure;
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb = Verb::new::<MonitorEnded>(Group::Hidden, "monitor-ended", "");

/// Arguments.
#[derive(Debug, Args)]
pub struct MonitorEnded {
    name: String,
    /// How init ended.
    ended: Vec<String>,
}

impl Run for MonitorEnded {
    fn run(self, context: &Context) -> Outcome {
        let ended = self.ended.join(" ");
        let ended = Ended::parse(&ended)
            .ok_or_else(|| Failure::usage(format!("{ended:?} is not how a process ends")))?;
        guest::end_of_run(&Guest::new(&context.pool()?, &Name::new(&self.name)?), ended)?;
        Ok(0)
    }
}
