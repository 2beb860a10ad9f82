//! `holm rm`.

use clap::Args;
use holm::guest::{self, Guest};
use holm::pool::Name;

use crate::context::Context;
use crate::output;
use crate::several::Names;
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb =
    Verb::new::<Rm>(Group::Guests, "rm", "Remove stopped guests with all they hold")
        .aliases(&["delete", "remove", "destroy"])
        .examples("holm rm web\nholm rm --force web     # also if it runs\nholm rm --all");

/// Arguments.
#[derive(Debug, Args)]
pub struct Rm {
    #[command(flatten)]
    names: Names,
    /// Kill those that run
    #[arg(long, short)]
    force: bool,
}

impl Run for Rm {
    fn run(self, context: &Context) -> Outcome {
        self.names.each(context, |pool, name| {
            let guest = Name::new(name)?;
            if self.force {
                // Killing it first would harm a guest that then must not be removed.
                if Guest::new(pool, &guest).config().is_ok_and(|(_, config)| config.protect) {
                    return Err(guest::Error::Protected(guest).into());
                }
                match guest::kill(&Guest::new(pool, &guest)) {
                    Ok(()) | Err(guest::Error::NotRunning(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            guest::remove(&Guest::new(pool, &guest)).map_err(|error| match error {
                // Nobody is to be told to do what was just done.
                guest::Error::Running { name, .. } | guest::Error::Restarting { name, .. }
                    if self.force =>
                {
                    guest::Error::Running { name, hint: "; it was started again meanwhile" }
                }
                error => error,
            })?;
            Ok((String::new(), output::json(&output::Named { name: name.to_owned() })))
        })
    }
}
