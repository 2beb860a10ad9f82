//! `holm rename`.

use clap::Args;
use holm::guest::{self, Guest};
use holm::pool::Name;

use crate::context::Context;
use crate::verb::{Group, Outcome, Run, Verb};
use crate::{output, term};

pub const VERB: Verb =
    Verb::new::<Rename>(Group::Guests, "rename", "Give a stopped guest another name")
        .aliases(&["mv", "move"])
        .examples("holm rename web shop");

/// Arguments.
#[derive(Debug, Args)]
pub struct Rename {
    /// The guest
    name: String,
    /// Its new name
    new: String,
}

impl Run for Rename {
    fn run(self, context: &Context) -> Outcome {
        let (old, new) = (Name::new(&self.name)?, Name::new(&self.new)?);
        guest::rename(&Guest::new(&context.pool()?, &old), &new)?;
        if context.json {
            term::print(&format!(
                "{}\n",
                output::json(&output::Renamed { name: new.to_string(), old_name: old.to_string() })
            ));
        }
        Ok(0)
    }
}
