//! `holm gc`.

use clap::Args;
use holm::flows;
use holm::store::{self, Collected};

use crate::context::Context;
use crate::verb::{Group, Outcome, Run, Verb};
use crate::{output, term};

pub const VERB: Verb =
    Verb::new::<Gc>(Group::Host, "gc", "Remove files that no base and no guest has any more")
        .aliases(&["prune"])
        .examples(
            "holm gc\n\n\
     Commands on bases and unifications do this too. It waits for no import and no unification.\n\
     Connections that guests have recorded which do not exist any more go after 90 days.",
        );

/// No arguments.
#[derive(Debug, Args)]
pub struct Gc {}

impl Run for Gc {
    fn run(self, context: &Context) -> Outcome {
        let pool = context.pool_if_any()?;
        if let Some(pool) = &pool {
            flows::remove_old(pool)?;
        }
        let collected = pool.as_ref().map_or(Ok(Some(Collected::default())), store::gc)?;
        if context.json {
            term::print(&format!("{}\n", output::json(&output::Collected::from(collected))));
        } else if !context.quiet {
            let text = match collected {
                Some(Collected { objects: 0, .. }) => "nothing to remove".to_owned(),
                Some(Collected { objects, bytes }) => {
                    let files = if objects == 1 { "file" } else { "files" };
                    format!("{objects} {files} removed, {} freed", term::size(bytes))
                }
                None => "an import or a unification runs; what is unused goes after it".to_owned(),
            };
            term::print(&format!("{text}\n"));
        }
        Ok(0)
    }
}
