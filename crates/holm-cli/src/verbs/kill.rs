//! `holm kill`.

use clap::Args;
use holm::config::Signal;
use holm::guest::{self, Guest};
use holm::pool::Name;

use crate::context::Context;
use crate::output;
use crate::several::{self, Names};
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb =
    Verb::new::<Kill>(Group::Guests, "kill", "Kill all processes of guests at once").examples(
        "holm kill web\nholm kill --all\n\
         holm kill --signal HUP web     # to process 1 only; any signal but KILL",
    );

const KILL: Signal = Signal(9);

/// Arguments.
#[derive(Debug, Args)]
pub struct Kill {
    #[command(flatten)]
    names: Names,
    /// KILL reaches all processes, another signal process 1 only [default: KILL]
    #[arg(long, short, value_name = "SIGNAL", value_parser = Signal::parse)]
    signal: Option<Signal>,
}

impl Run for Kill {
    fn run(self, context: &Context) -> Outcome {
        let all = self.names.is_all();
        let signal = self.signal.unwrap_or(KILL);
        self.names.including_ephemeral().each(context, |pool, name| {
            let guest = Name::new(name)?;
            let sent = if signal == KILL {
                guest::kill(&Guest::new(pool, &guest))
            } else {
                guest::signal(&Guest::new(pool, &guest), signal)
            };
            let signal = match sent {
                // `--all` means those that run.
                Err(error) if all && several::is_not_running(&error) => None,
                sent => sent.map(|()| Some(signal.to_string()))?,
            };
            Ok((String::new(), output::json(&output::Signalled { name: name.to_owned(), signal })))
        })
    }
}
