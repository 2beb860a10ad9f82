//! From the command line to a verb.
//!
//! clap takes 0.7 ms to build forty verbs and a command often takes less. So the verb is found first,
//! and clap builds that one.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::context::Context;
use crate::failure::{Failure, WRONG_USAGE};
use crate::verbs::{self, Verb};
use crate::{failure, term, words};

/// Runs the command line and gives the exit status.
pub fn run(args: &[OsString]) -> ExitCode {
    let json = args.iter().take_while(|a| *a != "--").any(|a| a == "--json");
    let verb = match find(args) {
        First::Verb(verb) => verb,
        First::Unknown(word) => {
            let failure = Failure::usage(words::unknown(&word));
            return failure::show(&failure, json, term::colours_on_stderr(None));
        }
        First::Help => {
            term::print(&verbs::overview());
            return ExitCode::SUCCESS;
        }
        First::Version => {
            term::print(&format!("holm {}\n", env!("CARGO_PKG_VERSION")));
            return ExitCode::SUCCESS;
        }
        First::Nothing => {
            term::print_error(&verbs::overview());
            return ExitCode::from(WRONG_USAGE);
        }
    };
    let matches = match root().subcommand(verb.clap()).try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(e) => return usage(&e, json),
    };
    holm::step::done("command-line");
    let Some((_, inner)) = matches.subcommand() else { return ExitCode::from(WRONG_USAGE) };
    // Options after a verb's own verb (`holm base ls --json`) are known to the innermost only.
    let innermost = std::iter::successors(Some(inner), |m| m.subcommand().map(|(_, m)| m)).last();
    let context = context(innermost.unwrap_or(inner));
    match (verb.run)(&context, inner) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => failure::show(&failure, context.json, context.colour_errors),
    }
}

/// What the first word that is no global option says.
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
            word => {
                return verbs::find(word)
                    .map_or_else(|| First::Unknown(word.to_owned()), First::Verb);
            }
        }
    }
    First::Nothing
}

/// `holm` with its global options and no verb.
pub fn root() -> Command {
    Command::new("holm")
        .about("Runs many small, complete Linux systems on one kernel")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .next_help_heading("Global options")
        .subcommand_required(true)
        .arg(
            Arg::new("root")
                .long("root")
                .value_name("DIR")
                .global(true)
                .value_parser(clap::value_parser!(std::path::PathBuf))
                .help("Where everything is kept [default: HOLM_ROOT, else /var/lib/holm]"),
        )
        .arg(flag("json", None, "Print JSON"))
        .arg(flag("quiet", Some('q'), "Print errors only"))
        .arg(
            Arg::new("color")
                .long("color")
                .value_name("WHEN")
                .global(true)
                .value_parser(["auto", "always", "never"])
                .hide_possible_values(true)
                .help("Use colours: auto, always, never [default: auto]"),
        )
}

fn flag(name: &'static str, short: Option<char>, help: &'static str) -> Arg {
    Arg::new(name).long(name).short(short).global(true).action(ArgAction::SetTrue).help(help)
}

fn context(matches: &ArgMatches) -> Context {
    let colour = matches.get_one::<String>("color").map(String::as_str);
    Context {
        root: matches.get_one("root").cloned(),
        json: matches.get_flag("json"),
        quiet: matches.get_flag("quiet"),
        colour: term::colours_on_stdout(colour),
        colour_errors: term::colours_on_stderr(colour),
    }
}

/// What clap has to say: help on standard output, or what is wrong with the words.
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
