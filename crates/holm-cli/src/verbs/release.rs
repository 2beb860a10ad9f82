//! `holm release`.

use clap::Args;
use holm::{Code, guest};

use crate::context::Context;
use crate::failure::Failure;
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
        // Opening would make one.
        if !root.join("stage").is_dir() {
            let message = format!("there is no Holm root at {}", root.display());
            return Err(Failure::new(Code::RootNotFound, message).object(root.display()));
        }
        guest::release(context.pool()?)?;
        if context.json {
            term::print(&format!("{}\n", output::json(&output::Released { root })));
        }
        Ok(0)
    }
}
