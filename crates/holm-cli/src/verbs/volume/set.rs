//! `holm volume set`.

use clap::Args;
use holm::config;
use holm::pool::Name;
use holm::volume::{self, Fitted};

use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::several;
use crate::verb::{Outcome, Run};

const EXAMPLES: &str = "Examples:
  holm volume set pg --size 40G
  holm volume set pg --size none

Guests may run meanwhile, unless the volume has never had a limit. One in a disk image always has
a limit; a smaller one holds when no guest runs with it.";

/// Arguments.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Set {
    /// The volume
    name: String,
    /// The most that it may hold, or `none`
    #[arg(long)]
    size: String,
}

impl Run for Set {
    fn run(self, context: &Context) -> Outcome {
        let name = Name::new(&self.name)?;
        let size = match self.size.as_str() {
            "none" => None,
            size => {
                Some(config::disk_size(size).map_err(|why| Failure::usage(why).object("--size"))?)
            }
        };
        let fitted = volume::set(&context.pool()?, &name, size)?;
        let note = match fitted {
            Fitted::Now => "",
            Fitted::AtNextStart => {
                "it holds from the next start of a guest with it, when none runs"
            }
        };
        several::report(context, note, &output::json(&output::Named { name: name.to_string() }));
        Ok(0)
    }
}
