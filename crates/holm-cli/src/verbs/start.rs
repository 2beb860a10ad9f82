//! `holm start`.

use clap::Args;
use holm::guest;
use holm::pool::Name;
use serde_json::json;

use super::{Group, Outcome, Run, Verb};
use crate::context::Context;
use crate::several::Names;

pub const VERB: Verb = Verb::new::<Start>(Group::Guests, "start", "Start guests")
    .aliases(&["boot"])
    .examples("holm start web\nholm start web db cache     # all at once\nholm start --all");

/// Arguments.
#[derive(Debug, Args)]
pub struct Start {
    #[command(flatten)]
    names: Names,
}

impl Run for Start {
    fn run(self, context: &Context) -> Outcome {
        self.names.each(context, |pool, name| {
            guest::start(pool, &Name::new(name)?)?;
            Ok((String::new(), json!({ "name": name })))
        })
    }
}
