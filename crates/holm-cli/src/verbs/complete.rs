//! The hidden `holm complete`, which the scripts of `holm completion` ask.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Args, Command};
use holm::config::{self, Kind};
use holm::host::FEATURES;
use holm::pool::Name;

use crate::context::Context;
use crate::verb::{Explain, Group, Outcome, Table, Verb};
use crate::{global, term};

pub const VERB: Verb = Verb::explaining::<Complete>(Group::Hidden, "complete", "");

/// The arguments so far; the last one is being typed.
#[derive(Debug, Args)]
pub struct Complete {
    #[arg(last = true)]
    arguments: Vec<String>,
}

impl Explain for Complete {
    fn run(self, context: &Context, table: Table) -> Outcome {
        let (arguments, split) = joined(self.arguments);
        let Some((typed, before)) = arguments.split_last() else { return Ok(0) };
        let mut text = String::new();
        for candidate in Place::of(before, context, table).candidates(typed) {
            if candidate.starts_with(typed.as_str()) {
                text.push_str(&candidate[split..]);
                text.push('\n');
            }
        }
        term::print(&text);
        Ok(0)
    }
}

/// The arguments as they were typed, of the words that bash makes of them: at each `=` it divides
/// an argument. Also how many bytes of the last argument stand before the word that it completes.
fn joined(words: Vec<String>) -> (Vec<String>, usize) {
    let (mut arguments, mut split) = (Vec::<String>::new(), 0);
    let mut after_sign = false;
    for word in words {
        let is_sign = word == "=";
        match arguments.last_mut() {
            Some(last) if is_sign || after_sign => {
                // The sign itself stays, and so does nothing else of it.
                split = if is_sign { last.len() + 1 } else { last.len() };
                last.push_str(&word);
            }
            _ => {
                split = 0;
                arguments.push(word);
            }
        }
        after_sign = is_sign;
    }
    (arguments, split)
}

/// Where in a command line the argument stands that is being typed.
struct Place {
    table: Table,
    /// The root that the line speaks of.
    context: Context,
    verb: Option<&'static Verb>,
    /// Whose arguments stand there: those of `holm`, of a verb, or of a verb's own verb.
    command: Command,
    /// The option whose value it is.
    option: Option<Arg>,
    /// How many arguments of that command, options left out, stand before it.
    positionals: usize,
    /// Nothing is known of it: it belongs to a command inside a guest, or to a verb that is none.
    unknown: bool,
}

impl Place {
    fn of(before: &[String], context: &Context, table: Table) -> Self {
        let mut place = Self {
            table,
            context: Context { root: context.root.clone(), ..*context },
            verb: None,
            command: global::command(),
            option: None,
            positionals: 0,
            unknown: false,
        };
        for argument in before {
            place.pass(argument);
        }
        place
    }

    fn pass(&mut self, argument: &str) {
        if let Some(option) = self.option.take() {
            if option.get_id() == "root" {
                self.context.root = Some(PathBuf::from(argument));
            }
        } else if argument == "--" {
            self.unknown = true;
        } else if let Some(root) = argument.strip_prefix("--root=") {
            self.context.root = Some(PathBuf::from(root));
        } else if argument.starts_with('-') {
            self.option = self.option_with_value(argument);
        } else if self.verb.is_none() {
            self.verb = self.table.find(argument);
            match self.verb {
                Some(verb) => self.command = verb.clap(),
                None => self.unknown = true,
            }
        } else if let Some(inner) = self.command.find_subcommand(argument).cloned() {
            self.command = inner;
        } else {
            // Whatever follows the program of a command inside is that command's.
            self.unknown |= self.argument().is_some_and(Arg::is_trailing_var_arg_set);
            self.positionals += 1;
        }
    }

    /// The option that an argument is, if its value is the next argument.
    fn option_with_value(&self, argument: &str) -> Option<Arg> {
        let is = |arg: &&Arg| match argument.strip_prefix("--") {
            Some(long) => {
                let aliases = arg.get_all_aliases().unwrap_or_default();
                arg.get_long() == Some(long) || aliases.contains(&long)
            }
            // Options of one letter may stand together: -it.
            None => arg.get_short().is_some() && arg.get_short() == argument.chars().last(),
        };
        let root = global::command();
        let found = self.command.get_arguments().chain(root.get_arguments()).find(is)?;
        (found.get_action().takes_values() && !found.is_require_equals_set()).then(|| found.clone())
    }

    /// What stands there, if it is no option.
    fn argument(&self) -> Option<&Arg> {
        let all: Vec<&Arg> = self.command.get_positionals().collect();
        let last = all.last().filter(|last| matches!(last.get_action(), ArgAction::Append));
        all.get(self.positionals).or(last).copied()
    }

    fn candidates(&self, typed: &str) -> Vec<String> {
        if self.unknown {
            return Vec::new();
        }
        if let Some(option) = &self.option {
            return self.values(option, typed);
        }
        let Some(verb) = self.verb else {
            return verbs(self.table).chain(options(&self.command)).collect();
        };
        if let Some((name, value)) = typed.split_once('=')
            && let Some(option) = self.option_with_value(name)
        {
            return behind(name, "=", self.values(&option, value));
        }
        if typed.starts_with('-') {
            return options(&self.command).chain(options(&global::command())).collect();
        }
        if self.command.has_subcommands() {
            return self.command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
        }
        self.argument().map_or_else(Vec::new, |argument| self.values_of(verb, argument, typed))
    }

    /// What an option may be set to.
    fn values(&self, option: &Arg, typed: &str) -> Vec<String> {
        match option.get_id().as_str() {
            "base" => self.names(true),
            "mount" => self.volumes().into_iter().map(|name| name + ":").collect(),
            "set" => self.changes(typed),
            "signal" => config::signals().map(str::to_owned).collect(),
            "init" => choices("init"),
            "net" => choices("net.mode"),
            "columns" => {
                // Those before the last comma are there already.
                let before = typed.rfind(',').map_or("", |comma| &typed[..=comma]);
                columns().map(|name| format!("{before}{name}")).collect()
            }
            "sort" => columns().chain(columns().map(|name| format!("-{name}"))).collect(),
            "filter" => columns().map(|name| format!("{name}=")).collect(),
            _ => possible(option),
        }
    }

    /// What the argument of a verb may be. New names and files are the typist's to know.
    fn values_of(&self, verb: &Verb, argument: &Arg, typed: &str) -> Vec<String> {
        match (verb.name, argument.get_id().as_str()) {
            ("help", _) => verbs(self.table).collect(),
            ("doctor", _) => FEATURES.iter().map(|f| f.name.to_owned()).collect(),
            ("set", "changes") => self.changes(typed),
            ("unset" | "inspect", "key" | "keys") => {
                keys().into_iter().map(|k| k.trim_end_matches('=').to_owned()).collect()
            }
            ("base", "name") if self.command.get_name() == "import" => Vec::new(),
            ("base", "name" | "names") => self.names(true),
            ("volume", _) if self.command.get_name() == "create" => Vec::new(),
            ("volume", "name" | "names") => self.volumes(),
            ("create" | "launch", _) => Vec::new(),
            (_, "name" | "names") => self.names(false),
            _ => possible(argument),
        }
    }

    /// What `KEY=VALUE` may be: a key, or a value of the key that stands there.
    fn changes(&self, typed: &str) -> Vec<String> {
        let Some((left, _)) = typed.split_once('=') else { return keys() };
        let name = left.trim_end_matches(['+', '-']);
        let values = match (name, config::find(name).map(|key| key.kind)) {
            ("base", _) => self.names(true),
            ("volumes", _) => self.volumes().into_iter().map(|name| name + ":").collect(),
            ("stop.signal", _) => config::signals().map(str::to_owned).collect(),
            (_, Some(Kind::Bool | Kind::FlagOrCount)) => vec!["true".into(), "false".into()],
            _ => choices(name),
        };
        behind(left, "=", values)
    }

    /// Bases or guests.
    fn names(&self, bases: bool) -> Vec<String> {
        let there = self.context.look_if_any().ok().flatten();
        let list = there.and_then(|p| if bases { p.bases().ok() } else { p.guests().ok() });
        list.unwrap_or_default().iter().map(Name::to_string).collect()
    }

    fn volumes(&self) -> Vec<String> {
        let there = self.context.look_if_any().ok().flatten();
        let list = there.and_then(|pool| pool.volumes().ok());
        list.unwrap_or_default().iter().map(Name::to_string).collect()
    }
}

fn verbs(table: Table) -> impl Iterator<Item = String> {
    table.all().filter(|v| !v.is_hidden()).map(|v| v.name.to_owned())
}

fn options(command: &Command) -> impl Iterator<Item = String> {
    let visible = command.get_arguments().filter(|a| !a.is_hide_set());
    visible.filter_map(|a| a.get_long()).map(|long| format!("--{long}"))
}

/// All keys; of one in which the user chooses a name, the part before that.
fn keys() -> Vec<String> {
    let mut keys: Vec<String> = config::keys()
        .iter()
        .map(|key| key.name.split_once('*').map_or(format!("{}=", key.name), |k| k.0.to_owned()))
        .collect();
    keys.dedup();
    keys
}

fn behind(left: &str, sign: &str, values: Vec<String>) -> Vec<String> {
    values.into_iter().map(|value| format!("{left}{sign}{value}")).collect()
}

/// The columns of `ls`.
fn columns() -> impl Iterator<Item = String> {
    super::ls::COLUMNS.iter().map(|column| column.name.to_owned())
}

/// The values that a key takes.
fn choices(key: &str) -> Vec<String> {
    match config::find(key).map(|key| key.kind) {
        Some(Kind::Choice(values)) => values.iter().map(|&value| value.to_owned()).collect(),
        _ => Vec::new(),
    }
}

fn possible(argument: &Arg) -> Vec<String> {
    argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect()
}
