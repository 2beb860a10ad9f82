//! `holm volume create`.

use clap::Args;
use holm::config;
use holm::pool::Name;
use holm::volume;

use crate::context::Context;
use crate::failure::Failure;
use crate::verb::{Outcome, Run};
use crate::{output, term};

const EXAMPLES: &str = "Examples:
  holm volume create pg
  holm volume create scratch --size 20G

A guest that names a volume makes it at its start, with what it has at the target; so this is
for a volume that is to begin empty.";

/// Arguments.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Create {
    /// The new volume
    name: String,
    /// The most that it may hold
    #[arg(long)]
    size: Option<String>,
}

impl Run for Create {
    fn run(self, context: &Context) -> Outcome {
        let name = Name::new(&self.name)?;
        let size = self.size.as_deref().map(config::disk_size).transpose();
        let size = size.map_err(|reason| Failure::usage(reason).object("--size"))?;
        volume::create(&context.new_pool()?, &name, size)?;
        if context.json {
            term::print(&format!("{}\n", output::json(&output::Named { name: name.to_string() })));
        }
        Ok(0)
    }
}
