//! From the command line to a verb.
//!
//! clap takes 0.7 ms to build forty verbs and a command often takes less. So the verb is found
//! first, and clap builds that one.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

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
            let failure = other_tools::unknown_verb(TABLE, &name);
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
        First::Nothing if json => {
            let failure = Failure::usage("no verb is given").help("holm --help lists them");
            return failure::show(&failure, true, false);
        }
        First::Nothing => {
            term::print_error(&overview(TABLE));
            return ExitCode::from(WRONG_USAGE);
        }
    };
    let matches = match global::command().subcommand(verb.clap()).try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(e) => return usage(&e, verb, json),
    };
    holm::step::done("command-line");
    let Some((_, inner)) = matches.subcommand() else { return ExitCode::from(WRONG_USAGE) };
    // Options after a verb's own verb (`holm base ls --json`) are known to the innermost only.
    let innermost = std::iter::successors(Some(inner), |m| m.subcommand().map(|(_, m)| m)).last();
    let innermost = innermost.unwrap_or(inner);
    let context = global::context(innermost);
    match verb.run(&context, TABLE, inner) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            let name = innermost.try_get_one::<String>("name").ok().flatten();
            let failure = name.into_iter().fold(failure, |failure, name| failure.of(name));
            failure::show(&failure, context.json, context.colour_errors)
        }
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
fn usage(error: &clap::Error, verb: &Verb, json: bool) -> ExitCode {
    let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if json && !asked {
        return failure::show(&usage_failure(error, verb), true, false);
    }
    // Nobody reads it if this fails.
    let _ = error.print();
    if asked { ExitCode::SUCCESS } else { ExitCode::from(WRONG_USAGE) }
}

/// What is wrong with the arguments, for a program.
fn usage_failure(error: &clap::Error, verb: &Verb) -> Failure {
    let text = error.to_string();
    // clap ends with the usage and with what `--help` prints anyway.
    let text = text.split("\n\nUsage:").next().unwrap_or(&text).trim_start_matches("error: ");
    let (message, tip) = text.split_once("\n\n  tip: ").unwrap_or((text, ""));
    let tip = tip.lines().next().filter(|tip| !tip.is_empty()).map(str::to_owned);
    let message: Vec<&str> = message.split_whitespace().collect();
    let mut failure = Failure::usage(message.join(" "))
        .help(tip.unwrap_or_else(|| format!("holm help {}", verb.name)));
    if let Some(cause) = std::error::Error::source(error) {
        failure = failure.reason(cause);
    }
    match error.get(ContextKind::InvalidArg).or_else(|| error.get(ContextKind::InvalidSubcommand)) {
        Some(ContextValue::String(argument)) => failure.object(argument),
        Some(ContextValue::Strings(arguments)) => failure.object(arguments.join(" ")),
        _ => failure,
    }
}
