//! `holm start`.

use std::collections::BTreeMap;

use clap::{ArgGroup, Args};
use holm::guest;
use holm::pool::{Name, Pool};
use serde_json::Value;

use crate::context::Context;
use crate::failure::{FAILED, Failure};
use crate::ready::Ready;
use crate::several::{self, Names};
use crate::term;
use crate::verb::{Group, Outcome, Run, Verb};

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
        let all = self.all;
        Names::new(self.names, all)
            .each(context, |pool, name| start(pool, &Name::new(name)?, &self.ready, all))
    }
}

impl Start {
    /// Starts one place of the order after the other. A guest that does not start keeps no other from it.
    fn in_order(self, context: &Context) -> Outcome {
        let pool = context.pool()?;
        let mut told = Vec::new();
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
                    let failure = Failure::from(error);
                    if !context.json {
                        term::print_error(&failure.text(context.colour_errors));
                    }
                    told.push(several::failed(guest.name.as_str(), &failure));
                    worst = FAILED;
                }
            }
        }
        for names in places.into_values() {
            let place = several::at_once(context, &names, &mut told, |name| {
                start(&pool, &Name::new(name)?, &self.ready, false)
            });
            worst = worst.max(place?);
        }
        several::report_all(context, told);
        Ok(worst)
    }
}

fn start(pool: &Pool, guest: &Name, ready: &Ready, all: bool) -> Result<(String, Value), Failure> {
    match guest::start(pool, guest) {
        // `--all` asks for a state in which all run.
        Err(guest::Error::AlreadyRunning(_)) if all => {}
        started => started?,
    }
    ready.wait(pool, guest)
}
