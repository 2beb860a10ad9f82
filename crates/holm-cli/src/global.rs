//! The options that every verb has.

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::context::Context;
use crate::term;

/// `holm` with its global options and no verb.
pub fn command() -> Command {
    Command::new("holm")
        .about("Runs system containers: many small, complete Linux systems on one kernel")
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

/// What these options say.
pub fn context(matches: &ArgMatches) -> Context {
    let colour = matches.get_one::<String>("color").map(String::as_str);
    Context {
        root: matches.get_one("root").cloned(),
        json: matches.get_flag("json"),
        quiet: matches.get_flag("quiet"),
        colour: term::colours_on_stdout(colour),
        width: term::width(),
        colour_errors: term::colours_on_stderr(colour),
    }
}
