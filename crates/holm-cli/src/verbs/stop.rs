//! `holm stop`.

use std::io::ErrorKind;
use std::time::Duration;

use clap::Args;
use holm::config;
use holm::guest::{self, Guest};
use holm::pool::{Name, Pool};

use crate::context::Context;
use crate::output;
use crate::several::{self, Names};
use crate::term;
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb =
    Verb::new::<Stop>(Group::Guests, "stop", "Ask guests to end, and kill those that do not")
        .aliases(&["shutdown", "poweroff", "halt"])
        .examples("holm stop web\nholm stop --timeout 5s web db\nholm stop --all");

/// Arguments.
#[derive(Debug, Args)]
pub struct Stop {
    #[command(flatten)]
    names: Names,
    /// Kill after this time [default: stop.timeout of the guest, 30s]
    #[arg(long, short, alias = "time", value_name = "TIME", value_parser = config::duration)]
    #[arg(allow_negative_numbers = true)]
    timeout: Option<Duration>,
}

impl Run for Stop {
    fn run(self, context: &Context) -> Outcome {
        let all = self.names.is_all();
        self.names.including_ephemeral().each(context, |pool, name| {
            let guest = Name::new(name)?;
            let killed =
                match guest::stop(&Guest::new(pool, &guest), timeout(pool, &guest, self.timeout)) {
                    // `--all` asks for a state in which none runs.
                    Err(error) if all && several::is_not_running(&error) => false,
                    stopped => stopped?,
                };
            let text =
                if killed { format!("{name}: did not end in time, killed") } else { String::new() };
            Ok((text, output::json(&output::Killed { name: name.to_owned(), killed })))
        })
    }
}

/// The time that was asked for, else the guest's own, else the usual: for an ephemeral guest, which
/// has no guest.toml, and with a notice if that cannot be read, which must not keep a guest from
/// being stopped.
pub fn timeout(pool: &Pool, guest: &Name, asked: Option<Duration>) -> Duration {
    let usual = config::Stop::default().timeout;
    asked.unwrap_or_else(|| match Guest::new(pool, guest).config() {
        Ok((_, config)) => config.stop.timeout,
        Err(guest::Error::Failed(failed)) if failed.source.kind() == ErrorKind::NotFound => usual,
        Err(error) => {
            let seconds = usual.as_secs();
            term::print_error(&format!(
                "holm: stop.timeout of {guest} is not known, so it has {seconds} s: {error}\n"
            ));
            usual
        }
    })
}
