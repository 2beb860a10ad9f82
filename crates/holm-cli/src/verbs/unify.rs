//! `holm unify`.

use std::time::Duration;

use clap::Args;
use holm::config;
use holm::guest::{self, Guest, Unified};
use holm::pool::{Name, Pool};
use holm::store::{Found, Phase, Progress, UnifyOptions};

use crate::context::Context;
use crate::failure::{FAILED, Failure};
use crate::progress::Line;
use crate::several::Names;
use crate::verb::{Group, Outcome, Run, Verb};
use crate::{output, term};

pub const VERB: Verb = Verb::new::<Unify>(
    Group::Host,
    "unify",
    "Make one copy of what the private layers of guests have in common",
)
.aliases(&["dedupe", "deduplicate"])
.examples(
    "holm unify --all --dry-run                 # what it would save\n\
     holm unify --all --nice\n\
     holm unify web db --exclude '/var/lib/postgresql/*'\n\n\
     Guests that run get their new layer when they are started next. A file that a guest writes to\n\
     afterwards becomes its own again. Guests with share = false are left out.",
);

/// Arguments.
#[derive(Debug, Args)]
pub struct Unify {
    #[command(flatten)]
    names: Names,
    /// Only say what could be saved
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Leave out files that are smaller
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = config::size)]
    min_size: u64,
    /// Leave out files that have changed since: they may change again, which costs a copy
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = config::duration)]
    min_age: Duration,
    /// Leave out files whose paths in the guest match
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Leave the processors and the disk to others
    #[arg(long)]
    nice: bool,
}

impl Run for Unify {
    fn run(self, context: &Context) -> Outcome {
        let (all, several) = (self.names.is_all(), self.names.are_several());
        let pool = match context.pool_if_any()? {
            Some(pool) => pool,
            None if all => return Ok(finish(context, several, Vec::new(), 0)),
            None => return Err(context.no_root()),
        };
        let mut names = Vec::new();
        for name in self.names.list(&pool)? {
            let name = Name::new(&name)?;
            if takes_part(&pool, &name, all)? {
                names.push(name);
            }
        }
        let options = UnifyOptions {
            dry_run: self.dry_run,
            min_size: self.min_size,
            min_age: self.min_age,
            exclude: self.exclude,
            nice: self.nice,
        };
        let mut line = Line::new(context);
        let (mut documents, mut worst, mut lines) = (Vec::new(), 0, Vec::new());
        let result = guest::unify(
            &pool,
            &names,
            &options,
            &mut |progress| line.show(&text(&progress)),
            |found, done| match done {
                Ok(done) => {
                    lines.push(sentence(&found, &done, options.dry_run));
                    documents.push(output::json(&output::Unified::new(&found, &done)));
                }
                Err(error) => {
                    worst = FAILED;
                    let failure = Failure::from(error).of(&found.guest);
                    lines.push(failure.text(context.colour_errors));
                    documents.push(failure.json());
                }
            },
        );
        line.clear();
        result?;
        if !context.json && !context.quiet {
            lines.iter().filter(|line| !line.is_empty()).for_each(|line| {
                term::print(&format!("{}\n", line.trim_end()));
            });
        }
        Ok(finish(context, several, documents, worst))
    }
}

fn finish(context: &Context, several: bool, documents: Vec<String>, worst: u8) -> u8 {
    if context.json {
        let text = match documents.as_slice() {
            [one] if !several => one.clone(),
            _ => output::array(documents),
        };
        term::print(&format!("{text}\n"));
    }
    worst
}

/// Whether a guest is unified. One that cannot be is an error if it was named.
fn takes_part(pool: &Pool, name: &Name, all: bool) -> Result<bool, Failure> {
    match guest::require_shared(&Guest::new(pool, name)) {
        Ok(()) => Ok(true),
        Err(guest::Error::Unshared(_)) if all => Ok(false),
        Err(error) if all => {
            term::print_error(&format!("holm: {name} is left out: {error}\n"));
            Ok(false)
        }
        Err(error) => Err(Failure::from(error).of(name.as_str())),
    }
}

fn text(progress: &Progress) -> String {
    match progress.phase {
        Phase::Sync => "writing to the disk".to_owned(),
        _ if progress.done == 0 => format!("looking at {}", progress.note),
        _ => format!("reading {}  {}", term::size(progress.done), progress.note),
    }
}

fn sentence(found: &Found, done: &Unified, dry_run: bool) -> String {
    let Found { guest, files, bytes, recent } = found;
    let count = |n: u64| format!("{n} file{}", if n == 1 { "" } else { "s" });
    let said = match done {
        Unified::Done(done) if done.files > 0 => {
            format!("{} shared, {} freed", count(done.files), term::size(done.freed))
        }
        Unified::AtNextStart => {
            format!("{} of {} to be shared at its next start", count(*files), term::size(*bytes))
        }
        Unified::Unchanged if dry_run && *files > 0 => {
            format!("{} of {} could be shared", count(*files), term::size(*bytes))
        }
        _ if *recent > 0 => "nothing to share".to_owned(),
        _ => return String::new(),
    };
    if *recent == 0 {
        return format!("{guest}: {said}");
    }
    format!("{guest}: {said}; {} left out that changed lately (--min-age)", count(*recent))
}
