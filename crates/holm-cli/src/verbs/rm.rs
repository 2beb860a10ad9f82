//! `holm rm`.

use clap::Args;
use holm::Code;
use holm::guest::{self, Guest};
use holm::pool::{self, Name, Pool};
use holm::volume;

use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::several::Names;
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb =
    Verb::new::<Rm>(Group::Guests, "rm", "Remove stopped guests with all they hold but volumes")
        .aliases(&["delete", "remove", "destroy"])
        .examples(
            "holm rm web\n\
             holm rm --force web     # also if it runs\n\
             holm rm --volumes web   # with its volumes\n\
             holm rm --all",
        );

/// Arguments.
#[derive(Debug, Args)]
pub struct Rm {
    #[command(flatten)]
    names: Names,
    /// Kill those that run
    #[arg(long, short)]
    force: bool,
    /// Remove their volumes too, but those that other guests have
    #[arg(long)]
    volumes: bool,
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
            // RemovedGuest by another command since it was listed.
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
        let remove_volumes = self.volumes;
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
            let left = guest::remove(&Guest::new(pool, &guest)).map_err(|error| match error {
                // Nobody is to be told to do what was just done.
                guest::Error::Running { name, .. } | guest::Error::Restarting { name, .. }
                    if self.force =>
                {
                    guest::Error::Running { name, hint: "; it was started again meanwhile" }
                }
                error => error,
            })?;
            volumes(pool, name, left, remove_volumes)
        })
    }
}

/// Says which volumes a removed guest has left, or removes those that no other guest has.
fn volumes(
    pool: &Pool,
    name: &str,
    left: Vec<Name>,
    remove: bool,
) -> Result<(String, String), Failure> {
    let (mut kept, mut removed) = (Vec::new(), Vec::new());
    for volume in left {
        match if remove { volume::remove(pool, &volume).map(|()| true) } else { Ok(false) } {
            Ok(true) => removed.push(volume.to_string()),
            // Another guest has it, or has removed it.
            Err(volume::Error::NotFound { .. }) => {}
            Ok(false) | Err(volume::Error::InUse { .. }) => kept.push(volume.to_string()),
            Err(error) => return Err(error.into()),
        }
    }
    let text = match kept.as_slice() {
        [] => String::new(),
        [one] => format!("{name}: volume {one} is kept; holm volume rm {one} removes it"),
        many => format!(
            "{name}: volumes {} are kept; holm volume rm {} removes them",
            many.join(", "),
            many.join(" ")
        ),
    };
    let document = output::RemovedGuest {
        name: name.to_owned(),
        kept_volumes: kept,
        removed_volumes: removed,
    };
    Ok((text, output::json(&document)))
}
