//! `holm run`.

use clap::Args;
use holm::config;
use holm::guest::{self, Guest};
use holm::pool::Name;

use crate::context::Context;
use crate::failure::Failure;
use crate::options::Options;
use crate::verb::{Group, Outcome, Run, Verb, refuse_option, status_of};

pub const VERB: Verb = Verb::new::<RunOnce>(
    Group::Guests,
    "run",
    "Run one command in a guest that is gone when it ends",
)
.examples(
    "holm run --base busybox -- /bin/sh -c 'echo hello from $(hostname)'\n\
             holm run --base debian13 -v ./src:/src -m 1G --net none -- make -C /src\n\
             tar -c . | holm run --base debian13 -- sha256sum\n\
             holm run --base debian13 --name built --keep -- apt-get -y install gcc",
);

/// Arguments.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Switches that other tools have.
pub struct RunOnce {
    /// Its name [default: run-PID]
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    options: Options,
    /// Keep the guest, stopped, with what the command has changed
    #[arg(long)]
    keep: bool,
    /// Accepted for other tools' sake: without --keep the guest is always removed
    #[arg(long, hide = true, conflicts_with = "keep")]
    rm: bool,
    /// Accepted for other tools' sake: input and output are always the command's
    #[arg(short, long, hide = true)]
    interactive: bool,
    /// Accepted for other tools' sake: a terminal is passed on if there is one
    #[arg(short, long, hide = true)]
    tty: bool,
    #[arg(short, long, hide = true)]
    detach: bool,
    /// The command
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    command: Vec<String>,
}

impl Run for RunOnce {
    fn run(self, context: &Context) -> Outcome {
        if self.detach {
            let message = "run waits for its command; a guest that stays is made by holm launch";
            return Err(Failure::usage(message).help("holm launch NAME --base BASE -- CMD"));
        }
        refuse_option(&VERB, &self.command)?;
        if self.command.is_empty() {
            let message =
                "run needs a command; a guest that runs a whole system is made by holm launch";
            return Err(Failure::usage(message).help("holm launch NAME --base BASE"));
        }
        let name = self.name.unwrap_or_else(|| format!("run-{}", std::process::id()));
        let name = Name::new(&name)?;
        // Wrong arguments are an error before a Holm root is opened.
        let ended = if self.keep {
            let text = self.options.text(&self.command)?;
            guest::run_kept(&Guest::new(&context.new_pool()?, &name), &text)?
        } else {
            let config = config::from_changes(&self.options.changes(&self.command)?)?;
            holm::step::done("settings");
            guest::run(&Guest::new(&context.new_pool()?, &name), config)?
        };
        Ok(status_of(ended.how))
    }
}
