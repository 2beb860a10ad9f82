//! `holm rm`.

use clap::Args;
use holm::Code;
use holm::guest::{self, Guest};
use holm::pool::{self, Name, Pool};

use crate::context::Context;
use crate::failure::Failure;
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

/// Refuses all if one of them cannot be removed: nobody wants some of them gone and a message.
fn refuse_running(pool: &Pool, names: &Names) -> Result<(), Failure> {
    let mut running = Vec::new();
    for name in names.list(pool)? {
        let name = Name::new(&name)?;
        let guest = Guest::new(pool, &name);
        match guest::is_protected(&guest).and_then(|it| Ok((it, guest::is_active(&guest)?))) {
            Ok((true, _)) => return Err(guest::Error::Protected(name).into()),
            Ok((false, true)) => running.push(name.to_string()),
            Ok((false, false)) => {}
            // Removed by another command since it was listed.
            Err(guest::Error::Pool(pool::Error::NoGuest { .. })) if names.is_all() => {}
            Err(error) => return Err(error.into()),
        }
    }
    if running.is_empty() {
        return Ok(());
    }
    let names = running.join(" ");
    let message = format!("guests are running, so none is removed: {}", running.join(", "));
    let help = format!("holm stop {names}, or holm rm --force");
    Err(Failure::new(Code::GuestRunning, message).object(&names).help(help))
}

impl Run for Rm {
    fn run(self, context: &Context) -> Outcome {
        if !self.force
            && self.names.are_several()
            && let Some(pool) = context.pool_if_any()?
        {
            refuse_running(&pool, &self.names)?;
        }
        self.names.each(context, |pool, name| {
            let guest = Name::new(name)?;
            if self.force {
                // Killing it first would harm a guest that then must not be removed.
                if guest::is_protected(&Guest::new(pool, &guest))? {
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
