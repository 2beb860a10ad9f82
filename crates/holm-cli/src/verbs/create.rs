//! `holm create`.

use clap::Args;
use holm::guest::{self, Guest};
use holm::pool::Name;

use crate::context::Context;
use crate::options::Options;
use crate::verb::{Group, Outcome, Run, Verb};
use crate::{output, term};

pub const VERB: Verb =
    Verb::new::<Create>(Group::Guests, "create", "Make a guest, without starting it")
        .aliases(&["new"])
        .examples(
            "holm create web --base debian13 -p 8080:80 --memory 512M\n\
         holm create web --base debian13 --set net.mode=none --ssh-key ~/.ssh/id_ed25519.pub\n\
         holm create clock --base busybox -- sh -c 'while date; do sleep 60; done'",
        );

/// Arguments.
#[derive(Debug, Args)]
pub struct Create {
    /// The new guest
    name: String,
    #[command(flatten)]
    options: Options,
    /// A command that runs instead of a whole system (command)
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

impl Run for Create {
    fn run(self, context: &Context) -> Outcome {
        let name = Name::new(&self.name)?;
        let text = self.options.text(&self.command)?;
        guest::create(&Guest::new(&context.new_pool()?, &name), &text)?;
        if context.json {
            term::print(&format!("{}\n", output::json(&output::Named { name: name.to_string() })));
        }
        Ok(0)
    }
}
