//! `holm console`.

use std::io::{IsTerminal, stdin, stdout};
use std::os::fd::AsFd;

use clap::Args;
use holm::Code;
use holm::guest::{self, Guest};
use holm::monitor::{CLIENTS_MAX, Console, ConsoleEnd, Ended, MONITOR_SOCKET};

use super::status;
use crate::context::{self, Context};
use crate::failure::Failure;
use crate::term;
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb = Verb::new::<Attach>(Group::Inside, "console", "Attach to a guest's console")
    .aliases(&["attach"])
    .examples(
        "holm console web                 # Ctrl-] q leaves, Ctrl-] Ctrl-] types a Ctrl-]\n\
             holm console --read-only web     # Ctrl-C leaves; any number may look",
    );

/// Arguments.
#[derive(Debug, Args)]
pub struct Attach {
    /// Only look: no key reaches the guest
    #[arg(long, short)]
    read_only: bool,
    /// The guest
    name: String,
}

impl Run for Attach {
    fn run(self, context: &Context) -> Outcome {
        let pool = context.pool()?;
        let name = context::guest(&pool, &self.name)?;
        guest::ensure_monitor(&Guest::new(&pool, &name))?;
        let (input, output) = (stdin(), stdout());
        let typing = !self.read_only;
        let notice = |text: String| {
            if !context.quiet && output.is_terminal() {
                term::print_error(&text);
            }
        };
        let keys = if typing && input.is_terminal() { "Ctrl-] q" } else { "Ctrl-C" };
        notice(format!("the console of {name}; {keys} leaves it\n"));
        let console = Console {
            guest: name.as_str(),
            socket: &pool.guest_run_dir(&name).join(MONITOR_SOCKET),
            input: typing.then_some(input.as_fd()),
            output: output.as_fd(),
        };
        match console.run()? {
            ConsoleEnd::Detached => notice(format!("\nleft the console of {name}; it runs on\n")),
            ConsoleEnd::Ended(ended) => notice(format!("\n{name} {}\n", ended_text(ended))),
            ConsoleEnd::Refused => {
                let text = format!(
                    "{name}'s monitor shows its console to {CLIENTS_MAX} others, and to no more"
                );
                return Err(Failure::new(Code::ConsoleClosed, text)
                    .object(&name)
                    .help(format!("leave one of them (Ctrl-] q), or read holm logs -f {name}")));
            }
            ConsoleEnd::Dropped => {
                let text = format!(
                    "{name}'s monitor closed the console: this terminal was too slow, or the monitor was killed"
                );
                return Err(Failure::new(Code::ConsoleClosed, text)
                    .object(&name)
                    .help(format!("holm console {name}")));
            }
        }
        Ok(0)
    }
}

fn ended_text(ended: Ended) -> String {
    if ended.is_reboot() {
        "starts again".to_owned()
    } else if ended.is_poweroff() {
        "powered off".to_owned()
    } else {
        status::how_text(ended.how)
    }
}
