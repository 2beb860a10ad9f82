//! `holm logs`.

use std::io::stdout;
use std::os::fd::AsFd;

use clap::Args;
use holm::guest::{self, Guest};
use holm::monitor;

use crate::context::{self, Context};
use crate::failure::Failure;
use crate::term;
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb =
    Verb::new::<Logs>(Group::Inside, "logs", "Print what a guest wrote to its console")
        .aliases(&["log"])
        .examples(
            "holm logs web\n\
             holm logs -n 20 -f web     # the last 20 lines, and those to come\n\n\
             Holm keeps the last 1 to 2 MiB of each guest.",
        );

/// Arguments.
#[derive(Debug, Args)]
pub struct Logs {
    /// Go on with what the guest writes, until it has ended
    #[arg(long, short)]
    follow: bool,
    /// Begin with the last LINES lines
    #[arg(long, short = 'n', visible_alias = "tail", value_name = "LINES")]
    lines: Option<usize>,
    /// The guest
    name: String,
}

impl Run for Logs {
    fn run(self, context: &Context) -> Outcome {
        let pool = context.pool()?;
        let name = context::guest(&pool, &self.name)?;
        let output = stdout();
        // A guest that was removed meanwhile writes no more.
        let more = || guest::is_active(&Guest::new(&pool, &name)).unwrap_or(false);
        let logs = monitor::Logs {
            directory: &pool.guest_dir(&name),
            lines: self.lines,
            follow_while: self.follow.then_some(&more),
            output: output.as_fd(),
        };
        logs.run()
            .map_err(|error| Failure::new(format!("cannot read the log of {name}: {error}")))?;
        if !context.quiet {
            // What the guest itself could not write into its log.
            let (this, last) = guest::oom_kills(&Guest::new(&pool, &name)).unwrap_or_default();
            for (kills, run) in [(this, "this"), (last, "the last")].iter().filter(|k| k.0 > 0) {
                let what = format!("ran out of memory: {kills} processes killed in {run} run");
                term::print_error(&format!("holm: guest {name} {what}\n"));
            }
        }
        Ok(0)
    }
}
