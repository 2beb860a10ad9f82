//! `holm enter`.

use clap::Args;
use holm::exec::Command;

use crate::context::Context;
use crate::verb::{Group, Outcome, Run, Verb};
use crate::verbs::exec::in_guest;

pub const VERB: Verb = Verb::new::<Enter>(Group::Inside, "enter", "Open a login shell in a guest")
    .aliases(&["shell", "login"])
    .examples(
        "holm enter web\n\
         holm enter web --user alice\n\
         echo 'apt-get update' | holm enter web     # without a terminal: a script",
    );

/// Arguments.
#[derive(Debug, Args)]
pub struct Enter {
    /// Log in as this user of the guest, a name or a uid, optionally with a group
    #[arg(long, short, value_name = "USER[:GROUP]")]
    user: Option<String>,
    /// Start in this directory [default: the user's home]
    #[arg(long, short = 'w', visible_alias = "workdir", value_name = "DIR")]
    cwd: Option<String>,
    /// The guest
    name: String,
}

impl Run for Enter {
    fn run(self, context: &Context) -> Outcome {
        let command = Command { directory: self.cwd, user: self.user, ..Default::default() };
        in_guest(context, &self.name, &command)
    }
}
