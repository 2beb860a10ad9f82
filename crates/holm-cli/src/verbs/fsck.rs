//! `holm fsck`.

use std::ffi::OsString;
use std::fmt::Write;

use clap::Args;
use holm::guest;
use holm::store::{Fsck as Result, FsckOptions, Phase, Problem, Progress, Source};

use crate::context::Context;
use crate::progress::Line;
use crate::verb::{Group, Outcome, Run, Verb};
use crate::{output, term};

pub const VERB: Verb = Verb::new::<Fsck>(
    Group::Host,
    "fsck",
    "Check that files, images and guests are what they were when they were written",
)
.aliases(&["scrub"])
.examples(
    "holm fsck\n\
     holm fsck --repair\n\
     holm fsck --repair --from rootfs.tar.zst\n\n\
     Reads every object. With --repair, one whose content has changed is kept in\n\
     objects/.quarantine, and stored again from the source of a base that has it, or from any\n\
     directory or tar that has a file of that content. Guests may run.\n\
     The exit status is 0 if nothing is wrong, 1 if everything was repaired, and 4 if damage is left,\n\
     as that of fsck(8).",
);

/// Exit statuses of fsck(8).
const REPAIRED: u8 = 1;
const LEFT: u8 = 4;
/// How many users of a damaged object are named.
const USERS: usize = 5;

/// Arguments.
#[derive(Debug, Args)]
pub struct Fsck {
    /// Keep damaged objects aside, and fetch them again
    #[arg(long)]
    repair: bool,
    /// The mirror for bases from debootstrap [default: that of the host]
    #[arg(long, value_name = "URL")]
    mirror: Option<String>,
    /// A directory or tar that may have what is damaged
    #[arg(long, value_name = "SOURCE", requires = "repair")]
    from: Option<OsString>,
}

impl Run for Fsck {
    fn run(self, context: &Context) -> Outcome {
        let from = self.from.as_deref().map(Source::parse).transpose()?;
        let options = FsckOptions { repair: self.repair, mirror: self.mirror, from };
        let mut line = Line::new(context);
        let result = match context.pool_if_any()? {
            Some(pool) => {
                guest::fsck(&pool, &options, &mut |progress| line.show(&progress_text(&progress)))
            }
            None => Ok(Result::default()),
        };
        line.clear();
        let result = result?;
        if context.json {
            term::print(&format!("{}\n", output::json(&output::Checked::from(&result))));
        } else if !context.quiet || !result.problems.is_empty() {
            term::print(&text(&result));
        }
        Ok(match result.problems.as_slice() {
            [] => 0,
            problems if problems.iter().all(|problem| problem.repaired) => REPAIRED,
            _ => LEFT,
        })
    }
}

fn progress_text(progress: &Progress) -> String {
    match (progress.phase, progress.total) {
        (Phase::Install, _) => format!("installing {}", progress.note),
        (Phase::Sync, _) => "writing to the disk".to_owned(),
        (Phase::Read, Some(total)) => {
            format!("reading {} of {}", term::size(progress.done), term::size(total))
        }
        (Phase::Read, None) => format!("reading {}", term::size(progress.done)),
    }
}

fn text(result: &Result) -> String {
    let mut text = String::new();
    for Problem { subject, reason, users, repaired, remedy } in &result.problems {
        let mut needed: Vec<String> = users.iter().take(USERS).map(ToString::to_string).collect();
        if users.len() > USERS {
            needed.push(format!("{} more", users.len() - USERS));
        }
        let needed =
            if needed.is_empty() { String::new() } else { format!(" ({})", needed.join(", ")) };
        let then = if *repaired { "repaired" } else { "remedy" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{subject}{needed}: {reason}\n  {then}: {remedy}");
    }
    let looked = &result.looked;
    let left = result.problems.iter().filter(|problem| !problem.repaired).count();
    let found = match (result.problems.len(), left) {
        (0, _) => "nothing is wrong".to_owned(),
        (all, 0) => format!("{all} damaged, all repaired"),
        (all, left) => format!("{all} damaged, {left} left"),
    };
    let _ = writeln!(
        text,
        "{} objects of {} and {} images read: {found}",
        looked.objects,
        term::size(looked.bytes),
        looked.images
    );
    text
}
