//! `holm kill`.

use clap::Args;
use holm::guest;
use holm::pool::Name;
use serde_json::json;

use super::{Group, Outcome, Run, Verb};
use crate::context::Context;
use crate::several::Names;

pub const VERB: Verb =
    Verb::new::<Kill>(Group::Guests, "kill", "Kill all processes of guests at once")
        .examples("holm kill web\nholm kill --all");

/// Arguments.
#[derive(Debug, Args)]
pub struct Kill {
    #[command(flatten)]
    names: Names,
}

impl Run for Kill {
    fn run(self, context: &Context) -> Outcome {
        self.names.each(context, |pool, name| {
            guest::kill(pool, &Name::new(name)?)?;
            Ok((String::new(), json!({ "name": name })))
        })
    }
}
