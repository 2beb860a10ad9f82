//! `holm volume set`.

use clap::Args;
use holm::config;
use holm::pool::Name;
use holm::volume;

use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::several;
use crate::verb::{Outcome, Run};

const EXAMPLES: &str = "Examples:
  holm volume set pg --size 40G
  holm volume set pg --size none

Guests may run meanwhile, unless the volume has never had a limit.";

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
            size => Some(config::size(size).map_err(|why| Failure::usage(why).object("--size"))?),
        };
        volume::set(&context.pool()?, &name, size)?;
        several::report(context, "", &output::json(&output::Named { name: name.to_string() }));
        Ok(0)
    }
}
