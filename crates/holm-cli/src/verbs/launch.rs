//! `holm launch`.

use clap::Args;
use holm::guest::{self, Guest};
use holm::pool::Name;

use crate::context::Context;
use crate::options::Options;
use crate::ready::Ready;
use crate::several;
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb = Verb::new::<Launch>(Group::Guests, "launch", "Make a guest and start it")
    .examples(
        "holm launch web --base debian13 -p 8080:80 --wait\n\
         holm launch box --base busybox -- /bin/sleep 1000",
    );

/// Arguments.
#[derive(Debug, Args)]
pub struct Launch {
    /// The new guest
    name: String,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    ready: Ready,
    /// A command that runs instead of a whole system (command)
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

impl Run for Launch {
    fn run(self, context: &Context) -> Outcome {
        let name = Name::new(&self.name)?;
        let text = self.options.text(&self.command)?;
        let pool = context.new_pool()?;
        guest::create(&Guest::new(&pool, &name), &text)?;
        if let Err(error) = guest::start(&Guest::new(&pool, &name)) {
            // Nothing is left, so that the same command works once the cause is mended.
            let _ = guest::remove(&Guest::new(&pool, &name));
            return Err(error.into());
        }
        let (text, json) = self.ready.wait(&pool, &name)?;
        several::report(context, &text, &json);
        Ok(0)
    }
}
