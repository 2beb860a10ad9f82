//! `holm release`.

use clap::Args;
use holm::guest;
use serde_json::json;

use crate::context::Context;
use crate::failure::Failure;
use crate::term;
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb = Verb::new::<Release>(
    Group::Host,
    "release",
    "Release what a Holm root without running guests has taken of the host",
)
.examples(
    "holm release\n\
     holm --root /srv/lab release && rm -r /srv/lab    # nothing of it is left\n\n\
     Bases and stopped guests stay in the root. The next command there takes what it needs again.",
);

/// Arguments.
#[derive(Debug, Args)]
pub struct Release {}

impl Run for Release {
    fn run(self, context: &Context) -> Outcome {
        let root = context.root();
        // Opening would make one.
        if !root.join("stage").is_dir() {
            return Err(Failure::new(format!("there is no Holm root at {}", root.display())));
        }
        guest::release(context.pool()?)?;
        if context.json {
            term::print(&format!("{}\n", json!({ "root": root })));
        }
        Ok(0)
    }
}
