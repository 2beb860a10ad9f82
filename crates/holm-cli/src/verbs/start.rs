//! `holm start`.

use std::collections::BTreeMap;

use clap::{ArgGroup, Args};
use holm::guest;
use holm::pool::Name;

use super::{Group, Outcome, Run, Verb};
use crate::context::Context;
use crate::failure::{self, Failure};
use crate::ready::Ready;
use crate::several::Names;

pub const VERB: Verb =
    Verb::new::<Start>(Group::Guests, "start", "Start guests").aliases(&["boot"]).examples(
        "holm start web\nholm start web db cache     # all at once\n\
         holm start --wait web          # until it is up\nholm start --all\n\
         holm start --autostart         # what the host does when it boots",
    );

/// Arguments.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").required(true).args(["names", "all", "autostart"]))]
pub struct Start {
    /// The guests
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// All guests
    #[arg(long, short)]
    all: bool,
    /// Those with the key autostart that do not run, lower numbers first and equal ones at once
    #[arg(long)]
    autostart: bool,
    #[command(flatten)]
    ready: Ready,
}

impl Run for Start {
    fn run(self, context: &Context) -> Outcome {
        if self.autostart {
            return self.in_order(context);
        }
        start(context, Names::new(self.names, self.all), &self.ready)
    }
}

impl Start {
    /// Starts one place of the order after the other. A guest that does not start keeps no other from it.
    fn in_order(self, context: &Context) -> Outcome {
        let pool = context.pool()?;
        let mut worst = 0;
        let mut places: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for guest in guest::list(&pool)?.iter().filter(|guest| guest.state.is_none()) {
            match guest::configured(&pool, &guest.name) {
                Ok((_, config)) => {
                    if let Some(autostart) = config.autostart {
                        places.entry(autostart.order).or_default().push(guest.name.to_string());
                    }
                }
                Err(error) => {
                    failure::show(&Failure::from(error), context.json, context.colour_errors);
                    worst = failure::FAILED;
                }
            }
        }
        for names in places.into_values() {
            worst = worst.max(
                start(context, Names::new(names, false), &self.ready).unwrap_or_else(|failure| {
                    failure::show(&failure, context.json, context.colour_errors);
                    failure::FAILED
                }),
            );
        }
        Ok(worst)
    }
}

fn start(context: &Context, names: Names, ready: &Ready) -> Outcome {
    names.each(context, |pool, name| {
        let guest = Name::new(name)?;
        guest::start(pool, &guest)?;
        ready.wait(pool, &guest)
    })
}
