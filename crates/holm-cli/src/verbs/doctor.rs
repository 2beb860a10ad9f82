//! `holm doctor`.

use std::fmt::Write;

use clap::Args;
use holm::Code;
use holm::host::{self, FEATURES, Finding, State};

use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::term::{self, paint};
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb = Verb::new::<Doctor>(
    Group::Host,
    "doctor",
    "Say what this machine can and cannot do, and what to do about it",
)
.examples(
    "holm doctor                  # everything\n\
     holm doctor overlay erofs    # only these\n\
     holm doctor --json",
)
.more(features);

/// Exit status when no guest can start here.
const CANNOT_RUN: u8 = 1;

/// Arguments.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Features to look at [default: all]
    features: Vec<String>,
}

impl Run for Doctor {
    fn run(self, context: &Context) -> Outcome {
        let unknown = self.features.iter().find(|name| FEATURES.iter().all(|f| f.name != **name));
        if let Some(name) = unknown {
            return Err(Failure::usage(format!("no feature \"{name}\""))
                .code(Code::FeatureUnknown)
                .object(name)
                .help("`holm doctor --help` lists the features"));
        }
        let mut findings = host::probe_all(&context.root());
        if !self.features.is_empty() {
            findings.retain(|f| self.features.iter().any(|name| f.name == name));
        }
        let cannot_run = findings.iter().any(|f| f.needed && f.state == State::Missing);
        if context.json {
            let report = output::Report::new(!cannot_run, findings);
            term::print(&format!("{}\n", output::json(&report)));
        } else {
            term::print(&text(&findings, context.colour));
        }
        Ok(if cannot_run { CANNOT_RUN } else { 0 })
    }
}

/// One line for each finding; cost and remedy below those that are not as they should be.
fn text(findings: &[Finding], colour: bool) -> String {
    let width = findings.iter().map(|f| f.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for finding in findings {
        let (state, shade) = match finding.state {
            State::Ok => ("ok      ", GREEN),
            State::Degraded => ("degraded", YELLOW),
            State::Missing => ("missing ", term::RED),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{}  {:width$}  {}",
            paint(state, shade, colour),
            finding.name,
            finding.detail
        );
        if finding.state != State::Ok {
            let indent = " ".repeat(width + 12);
            let _ =
                writeln!(text, "{indent}{} {}", paint("cost:  ", term::BOLD, colour), finding.cost);
            let _ = writeln!(
                text,
                "{indent}{} {}",
                paint("remedy:", term::CYAN, colour),
                finding.remedy
            );
        }
    }
    let needed: Vec<&str> =
        findings.iter().filter(|f| f.needed && f.state == State::Missing).map(|f| f.name).collect();
    if needed.is_empty() {
        let _ = writeln!(text, "\nGuests can run here.");
    } else {
        let _ = writeln!(text, "\nNo guest can run here without: {}", needed.join(", "));
    }
    text
}

const GREEN: &str = "32";
const YELLOW: &str = "33";

/// The table of features, for the long help.
fn features() -> String {
    let width = FEATURES.iter().map(|f| f.name.len()).max().unwrap_or(0);
    FEATURES.iter().fold(
        String::from("Features, and what a host without them cannot do:\n"),
        |mut all, f| {
            let _ = writeln!(all, "  {:width$}  {}", f.name, f.cost);
            all
        },
    )
}
