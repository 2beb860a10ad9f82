//! `holm release`.

use clap::Args;
use holm::guest;

use crate::context::Context;
use crate::verb::{Group, Outcome, Run, Verb};
use crate::{output, term};

pub const VERB: Verb = Verb::new::<Release>(
    Group::Host,
    "release",
    "Give back what a Holm root without running guests has on the host",
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
        guest::release(context.pool()?)?;
        if context.json {
            term::print(&format!("{}\n", output::json(&output::Released { root })));
        }
        Ok(0)
    }
}
