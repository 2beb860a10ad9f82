//! From the command line to a verb.
//!
//! clap takes 0.7 ms to build forty verbs and a command often takes less. So the verb is found first,
//! and clap builds that one.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::failure::{Failure, WRONG_USAGE};
use crate::overview::overview;
use crate::verb::Verb;
use crate::verbs::TABLE;
use crate::{failure, global, other_tools, term};

/// Runs the command line and gives the exit status.
pub fn run(args: &[OsString]) -> ExitCode {
    let json = args.iter().take_while(|a| *a != "--").any(|a| a == "--json");
    let verb = match find(args) {
        First::Verb(verb) => verb,
        First::Unknown(name) => {
            let failure = Failure::usage(other_tools::unknown_verb(TABLE, &name));
            return failure::show(&failure, json, term::colours_on_stderr(None));
        }
        First::Help => {
            term::print(&overview(TABLE));
            return ExitCode::SUCCESS;
        }
        First::Version => {
            term::print(&format!("holm {}\n", env!("CARGO_PKG_VERSION")));
            return ExitCode::SUCCESS;
        }
        First::Nothing => {
            term::print_error(&overview(TABLE));
            return ExitCode::from(WRONG_USAGE);
        }
    };
    let matches = match global::command().subcommand(verb.clap()).try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(e) => return usage(&e, json),
    };
    holm::step::done("command-line");
    let Some((_, inner)) = matches.subcommand() else { return ExitCode::from(WRONG_USAGE) };
    // Options after a verb's own verb (`holm base ls --json`) are known to the innermost only.
    let innermost = std::iter::successors(Some(inner), |m| m.subcommand().map(|(_, m)| m)).last();
    let context = global::context(innermost.unwrap_or(inner));
    match verb.run(&context, TABLE, inner) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => failure::show(&failure, context.json, context.colour_errors),
    }
}

/// What the first argument that is no global option asks for.
enum First {
    Verb(&'static Verb),
    Unknown(String),
    Help,
    Version,
    Nothing,
}

fn find(args: &[OsString]) -> First {
    let mut rest = args.iter().skip(1);
    while let Some(arg) = rest.next() {
        match arg.to_string_lossy().as_ref() {
            "--root" | "--color" => {
                rest.next();
            }
            "-h" | "--help" => return First::Help,
            "-V" | "--version" => return First::Version,
            flag if flag.starts_with('-') && flag != "-" => {}
            name => {
                return TABLE
                    .find(name)
                    .map_or_else(|| First::Unknown(name.to_owned()), First::Verb);
            }
        }
    }
    First::Nothing
}

/// What clap has to say: help on standard output, or what is wrong with the arguments.
fn usage(error: &clap::Error, json: bool) -> ExitCode {
    let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if json && !asked {
        let text = error.to_string();
        let message = text.lines().next().unwrap_or("").trim_start_matches("error: ").to_owned();
        return failure::show(&Failure::usage(message), true, false);
    }
    // Nobody reads it if this fails.
    let _ = error.print();
    if asked { ExitCode::SUCCESS } else { ExitCode::from(WRONG_USAGE) }
}
