//! `holm start`.

use clap::Args;
use holm::guest;
use holm::pool::Name;
use serde_json::json;

use super::{Group, Outcome, Run, Verb};
use crate::context::Context;
use crate::ready::Ready;
use crate::several::Names;

pub const VERB: Verb = Verb::new::<Start>(Group::Guests, "start", "Start guests")
    .aliases(&["boot"])
    .examples("holm start web\nholm start web db cache     # all at once\nholm start --wait web          # until it is up\n\
         holm start --all");

/// Arguments.
#[derive(Debug, Args)]
pub struct Start {
    #[command(flatten)]
    names: Names,
    #[command(flatten)]
    ready: Ready,
}

impl Run for Start {
    fn run(self, context: &Context) -> Outcome {
        self.names.each(context, |pool, name| {
            let guest = Name::new(name)?;
            guest::start(pool, &guest)?;
            self.ready.wait(pool, &guest)?;
            Ok((String::new(), json!({ "name": name })))
        })
    }
}
