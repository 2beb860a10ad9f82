//! `holm start`.

use std::time::Duration;

use clap::{ArgGroup, Args};
use holm::config::Init;
use holm::guest::{self, Guest};
use holm::pool::{Name, Pool};

use crate::context::Context;
use crate::failure::Failure;
use crate::ready::Ready;
use crate::several::{Answer, Answers, Names};
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb =
    Verb::new::<Start>(Group::Guests, "start", "Start guests").aliases(&["boot"]).examples(
        "holm start web\nholm start web db cache     # all at once\n\
         holm start --wait web          # until it is up\nholm start --all\n\
         holm start --autostart         # what the host does when it boots\n\n\
         Of several guests, each is started as soon as the host can bear it: while it is short of CPU\n\
         time, memory or disk, one more only when another has booted.",
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
            let Some(pool) = context.pool_if_any()? else {
                return Ok(Answers::new(context).finish());
            };
            let mut answers = Answers::new(context);
            guest::autostart(
                &pool,
                |name| boots(&pool, name),
                |name| {
                    let started = Name::new(name).map_err(Failure::from);
                    let started = started.and_then(|name| start(&pool, &name, &self.ready, false));
                    Answer::new(context, name, started)
                },
                |name| settle(&pool, name),
                |name, answer| answers.add(name, answer),
            )?;
            return Ok(answers.finish());
        }
        let all = self.all;
        Names::new(self.names, all).start_each(
            context,
            boots,
            |pool, name| start(pool, &Name::new(name)?, &self.ready, all),
            settle,
        )
    }
}

/// Whether a guest is busy after its start: minimal init boots nothing.
fn boots(pool: &Pool, name: &str) -> bool {
    let config = |name: Name| Guest::new(pool, &name).config().ok();
    let config = Name::new(name).ok().and_then(config);
    config.is_none_or(|(_, config)| config.init != Init::Minimal)
}

/// How long other starts may wait for one guest that does not become ready.
const SETTLE: Duration = Duration::from_secs(10);

/// Waits until a guest that was started is ready, which is when its boot is over. Whatever else
/// comes of it, others are waiting.
fn settle(pool: &Pool, name: &str) {
    if let Ok(name) = Name::new(name) {
        let _ = guest::wait_ready(&Guest::new(pool, &name), SETTLE);
    }
}

fn start(pool: &Pool, guest: &Name, ready: &Ready, all: bool) -> Result<(String, String), Failure> {
    match guest::start(&Guest::new(pool, guest)) {
        // `--all` asks for a state in which all run.
        Err(guest::Error::AlreadyRunning(_)) if all => {}
        started => started.map_err(|error| ready.explain(error, guest))?,
    }
    ready.wait(pool, guest)
}
