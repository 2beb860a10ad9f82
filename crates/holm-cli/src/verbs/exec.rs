//! `holm exec`.

use std::collections::BTreeMap;

use clap::Args;
use holm::exec::Command;
use holm::guest::{self, Guest};
use holm::pool::Name;

use crate::context::Context;
use crate::failure::Failure;
use crate::verb::{Group, Outcome, Run, Verb, refuse_option, status_of};

pub const VERB: Verb = Verb::new::<Exec>(Group::Inside, "exec", "Run a command in a running guest")
    .examples(
        "holm exec web systemctl status nginx\n\
         holm exec web --user www-data --cwd /srv -- ls -l\n\
         tar -c ./site | holm exec web -- tar -x -C /srv\n\
         holm exec web sh -c 'exit 7'; echo $?      # the command's own status",
    );

/// Arguments.
#[derive(Debug, Args)]
pub struct Exec {
    /// Run as this user of the guest, a name or a uid, optionally with a group
    #[arg(long, short, value_name = "USER[:GROUP]")]
    user: Option<String>,
    /// Start in this directory [default: the user's home]
    #[arg(long, short = 'w', visible_alias = "workdir", value_name = "DIR")]
    cwd: Option<String>,
    /// Set an environment variable
    #[arg(long, short, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Accepted for other tools' sake: input is always passed on
    #[arg(short, long, hide = true)]
    interactive: bool,
    /// Accepted for other tools' sake: a terminal is passed on if there is one
    #[arg(short, long, hide = true)]
    tty: bool,
    /// The guest
    name: String,
    /// The command
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "CMD"
    )]
    command: Vec<String>,
}

impl Run for Exec {
    fn run(self, context: &Context) -> Outcome {
        refuse_option(&VERB, &self.command)?;
        let command = Command {
            argv: self.command,
            env: variables(&self.env)?,
            directory: self.cwd,
            user: self.user,
        };
        in_guest(context, &self.name, &command)
    }
}

/// Runs a command in a guest; its exit status becomes that of this command.
pub fn in_guest(context: &Context, name: &str, command: &Command) -> Outcome {
    match guest::exec(&Guest::new(&context.pool()?, &Name::new(name)?), command) {
        Ok(ended) => Ok(status_of(ended.how)),
        Err(error) => {
            let status = error.exit_status();
            Err(Failure::from(error).status(status))
        }
    }
}

/// Reads `NAME=VALUE`; a name alone takes the value from holm's own environment.
pub fn variables(texts: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut all = BTreeMap::new();
    for text in texts {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text.as_str(), std::env::var(text).ok()),
        };
        if name.is_empty() {
            return Err(Failure::usage(format!("--env {text}: write NAME=VALUE")).object("--env"));
        }
        all.extend(value.map(|value| (name.to_owned(), value)));
    }
    Ok(all)
}
