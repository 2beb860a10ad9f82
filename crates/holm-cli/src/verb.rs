//! What a verb of `holm` is, and the table of all of them as the few verbs see it that explain the
//! others.

use std::fmt;

use clap::{ArgMatches, Args, Command};
use holm::monitor::How;

use crate::context::Context;
use crate::failure::{FAILED, Failure};
use crate::global;

/// The exit status, or why the verb failed.
pub type Outcome = Result<u8, Failure>;

/// What a verb's arguments do.
pub trait Run: Args {
    /// Runs the verb.
    fn run(self, context: &Context) -> Outcome;
}

/// What the arguments of a verb do that explains other verbs.
pub trait Explain: Args {
    /// Runs the verb.
    fn run(self, context: &Context, table: Table) -> Outcome;
}

/// A verb of `holm`.
pub struct Verb {
    /// The verb itself, as it is typed.
    pub name: &'static str,
    /// Names that other tools have for it.
    pub aliases: &'static [&'static str],
    /// One line; empty for a verb that is not for people.
    pub about: &'static str,
    /// Command lines with what they do, for the help.
    pub examples: &'static str,
    /// Where the help lists it.
    pub group: Group,
    more: Option<fn() -> String>,
    arguments: fn(Command) -> Command,
    run: fn(&Context, Table, &ArgMatches) -> Outcome,
}

/// A heading of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// The life of guests.
    Guests,
    /// Inside a guest.
    Inside,
    /// A guest's settings.
    Settings,
    /// The host.
    Host,
    /// Not for people.
    Hidden,
}

impl Verb {
    /// A verb with the arguments `A`.
    pub const fn new<A: Run>(group: Group, name: &'static str, about: &'static str) -> Self {
        Self::with(group, name, about, A::augment_args, run::<A>)
    }

    /// A verb with the arguments `A` that explains others.
    pub const fn explaining<A: Explain>(
        group: Group,
        name: &'static str,
        about: &'static str,
    ) -> Self {
        Self::with(group, name, about, A::augment_args, explain::<A>)
    }

    const fn with(
        group: Group,
        name: &'static str,
        about: &'static str,
        arguments: fn(Command) -> Command,
        run: fn(&Context, Table, &ArgMatches) -> Outcome,
    ) -> Self {
        Self { name, aliases: &[], about, examples: "", group, more: None, arguments, run }
    }

    /// The same with names that other tools have for it.
    pub const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// The same with examples.
    pub const fn examples(self, examples: &'static str) -> Self {
        Self { examples, ..self }
    }

    /// The same with text below the examples of the long help.
    pub const fn more(self, more: fn() -> String) -> Self {
        Self { more: Some(more), ..self }
    }

    /// Whether the help leaves it out.
    pub fn is_hidden(&self) -> bool {
        self.group == Group::Hidden
    }

    /// Runs it with parsed arguments.
    pub fn run(&self, context: &Context, table: Table, matches: &ArgMatches) -> Outcome {
        (self.run)(context, table, matches)
    }

    /// The command that reads its arguments.
    pub fn clap(&self) -> Command {
        let mut command = (self.arguments)(Command::new(self.name))
            .about(self.about)
            .hide(self.is_hidden())
            .aliases(self.aliases)
            .disable_version_flag(true);
        if !self.examples.is_empty() {
            let examples = format!("Examples:\n{}", indented(self.examples));
            if let Some(more) = self.more {
                command = command.after_long_help(format!("{examples}\n{}", more()));
            }
            command = command.after_help(examples);
        }
        command
    }
}

impl fmt::Debug for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verb").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All verbs.
#[derive(Debug, Clone, Copy)]
pub struct Table(pub &'static [Verb]);

impl Table {
    /// All verbs, in the order of the help.
    pub fn all(self) -> impl Iterator<Item = &'static Verb> {
        self.0.iter()
    }

    /// The verb of this name.
    pub fn find(self, name: &str) -> Option<&'static Verb> {
        self.all().find(|v| v.name == name || v.aliases.contains(&name))
    }

    /// `holm` with all its verbs: for the manual.
    pub fn clap(self) -> Command {
        global::command().subcommands(self.all().map(Verb::clap))
    }
}

fn indented(text: &str) -> String {
    text.lines().fold(String::new(), |all, line| all + "  " + line + "\n")
}

fn run<A: Run>(context: &Context, _: Table, matches: &ArgMatches) -> Outcome {
    arguments::<A>(matches)?.run(context)
}

fn explain<A: Explain>(context: &Context, table: Table, matches: &ArgMatches) -> Outcome {
    arguments::<A>(matches)?.run(context, table)
}

fn arguments<A: Args>(matches: &ArgMatches) -> Result<A, Failure> {
    A::from_arg_matches(matches).map_err(|e| Failure::usage(e.to_string()))
}

/// Refuses a command that begins with a dash: it is a mistyped option of the verb.
pub fn refuse_option(verb: &Verb, command: &[String]) -> Result<(), Failure> {
    let Some(option) = command.first().filter(|first| first.starts_with('-')) else {
        return Ok(());
    };
    let typed = option.split('=').next().unwrap_or(option);
    let (own, global) = (verb.clap(), global::command());
    let options = own.get_arguments().chain(global.get_arguments()).filter_map(clap::Arg::get_long);
    let long: Vec<String> = options.map(|option| format!("--{option}")).collect();
    let near = holm::config::nearest(typed, long.iter().map(String::as_str));
    let guess = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
    let name = verb.name;
    let message = format!("holm {name} has no option {typed}{guess}");
    Err(Failure::usage(message).object(typed).help(format!("holm help {name}")))
}

/// The exit status that stands for an end, as in a shell.
pub fn status_of(how: How) -> u8 {
    match how {
        How::Exited(status) => status,
        How::Killed(signal) => 128_u8.saturating_add(signal),
        How::Unknown => FAILED,
    }
}
