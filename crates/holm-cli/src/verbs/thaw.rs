//! `holm thaw`.

use clap::Args;
use holm::guest;
use holm::pool::Name;
use serde_json::json;

use super::{Group, Outcome, Run, Verb};
use crate::context::Context;
use crate::several::Names;

pub const VERB: Verb = Verb::new::<Thaw>(Group::Guests, "thaw", "Let frozen guests go on")
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
        self.names.each(context, |pool, name| {
            guest::freeze(pool, &Name::new(name)?, false)?;
            Ok((String::new(), json!({ "name": name })))
        })
    }
}
