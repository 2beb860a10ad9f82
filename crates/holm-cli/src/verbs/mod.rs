//! One file for each verb, and the table of them.

use std::fmt::Write;

use clap::{ArgMatches, Args, Command};
use holm::monitor::How;

use crate::context::Context;
use crate::failure::{FAILED, Failure};

mod base;
mod complete;
mod completion;
mod console;
mod create;
mod doctor;
mod edit;
mod enter;
mod exec;
mod freeze;
mod help;
mod inspect;
mod kill;
mod launch;
mod logs;
mod ls;
mod man;
mod monitor_ended;
mod release;
mod rename;
mod restart;
mod rm;
mod run;
mod set;
mod start;
mod status;
mod stop;
mod thaw;
mod unset;
mod wait;

/// The exit status, or why there is none.
pub type Outcome = Result<u8, Failure>;

/// What a verb's arguments do.
pub trait Run: Args {
    /// Runs the verb.
    fn run(self, context: &Context) -> Outcome;
}

/// A verb of `holm`.
#[derive(Debug)]
pub struct Verb {
    /// The word itself.
    pub name: &'static str,
    /// Words of other tools that mean the same.
    pub aliases: &'static [&'static str],
    /// One line; empty for a verb that is not for people.
    pub about: &'static str,
    /// Command lines with what they do, for the help.
    pub examples: &'static str,
    group: Group,
    more: Option<fn() -> String>,
    arguments: fn(Command) -> Command,
    /// Runs it with parsed arguments.
    pub run: fn(&Context, &ArgMatches) -> Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Guests,
    Inside,
    Settings,
    Host,
    Hidden,
}

const GROUPS: [(Group, &str); 4] = [
    (Group::Guests, "Guests"),
    (Group::Inside, "Inside a guest"),
    (Group::Settings, "Settings"),
    (Group::Host, "Host"),
];

impl Verb {
    const fn new<A: Run>(group: Group, name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            aliases: &[],
            about,
            examples: "",
            group,
            more: None,
            arguments: A::augment_args,
            run: call::<A>,
        }
    }

    const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    const fn examples(self, examples: &'static str) -> Self {
        Self { examples, ..self }
    }

    /// Text below the examples of the long help.
    const fn more(self, more: fn() -> String) -> Self {
        Self { more: Some(more), ..self }
    }

    /// Whether people are told of it.
    pub fn is_hidden(&self) -> bool {
        self.group == Group::Hidden
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

fn indented(text: &str) -> String {
    text.lines().fold(String::new(), |all, line| all + "  " + line + "\n")
}

fn call<A: Run>(context: &Context, matches: &ArgMatches) -> Outcome {
    match A::from_arg_matches(matches) {
        Ok(arguments) => arguments.run(context),
        Err(e) => Err(Failure::usage(e.to_string())),
    }
}

static VERBS: &[Verb] = &[
    launch::VERB,
    create::VERB,
    start::VERB,
    stop::VERB,
    restart::VERB,
    kill::VERB,
    freeze::VERB,
    thaw::VERB,
    rm::VERB,
    rename::VERB,
    wait::VERB,
    run::VERB,
    ls::VERB,
    status::VERB,
    exec::VERB,
    enter::VERB,
    console::VERB,
    logs::VERB,
    inspect::VERB,
    set::VERB,
    unset::VERB,
    edit::VERB,
    base::VERB,
    doctor::VERB,
    release::VERB,
    help::VERB,
    completion::VERB,
    complete::VERB,
    man::VERB,
    monitor_ended::VERB,
];

/// The exit status that stands for an end, as in a shell.
pub fn status_of(how: How) -> u8 {
    match how {
        How::Exited(status) => status,
        How::Killed(signal) => 128_u8.saturating_add(signal),
        How::Unknown => FAILED,
    }
}

/// All verbs, in the order of the help.
pub fn all() -> impl Iterator<Item = &'static Verb> {
    VERBS.iter()
}

/// The verb that a word names.
pub fn find(word: &str) -> Option<&'static Verb> {
    VERBS.iter().find(|v| v.name == word || v.aliases.contains(&word))
}

/// `holm` with all its verbs: for the manual and for completion.
pub fn everything() -> Command {
    crate::cli::root().subcommands(all().map(Verb::clap))
}

/// The text of `holm --help`.
pub fn overview() -> String {
    let mut text = String::from(
        "holm runs many small, complete Linux systems on one kernel.\n\n\
         Usage: holm [OPTIONS] VERB ...\n",
    );
    for (group, title) in GROUPS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{title}:");
        for verb in VERBS.iter().filter(|v| v.group == group) {
            let _ = writeln!(text, "  {:<11} {}", verb.name, verb.about);
        }
    }
    text + "\nOptions:\n\
         \x20 --root DIR    where everything is kept [default: HOLM_ROOT, else /var/lib/holm]\n\
         \x20 --json        print JSON\n\
         \x20 -q, --quiet   print errors only\n\
         \x20 --color WHEN  auto, always or never [default: auto]\n\
         \x20 -h, --help    this text; holm help VERB tells more and gives examples\n\
         \x20 -V, --version\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell's words of a line, as far as the examples need one.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quoted = false;
        for c in line.chars() {
            match c {
                '\'' => quoted = !quoted,
                ' ' if !quoted => words.push(String::new()),
                ';' | '|' | '&' | '#' | '>' if !quoted => break,
                _ => words.last_mut().expect("there is always one").push(c),
            }
        }
        words.retain(|w| !w.is_empty());
        words
    }

    #[test]
    fn every_example_is_understood() {
        for verb in all().filter(|v| !v.is_hidden()) {
            understood(&format!("holm {}", verb.name), &verb.clap());
        }
    }

    /// The examples in a verb's help, and in the help of the verbs below it.
    fn understood(name: &str, command: &Command) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples = help.strip_prefix("Examples:\n").unwrap_or_else(|| panic!("{name}: {help}"));
        let examples = examples.lines().take_while(|l| !l.is_empty());
        let lines: Vec<&str> = examples.filter(|l| l.contains("holm ")).collect();
        let own = format!("{name} ");
        assert!(lines.iter().any(|l| format!("{l} ").contains(&own)), "{name}: {help}");
        for line in lines {
            let holm = line.find("holm ").expect("only such lines");
            let words = words(&line[holm..]);
            let result = everything().try_get_matches_from(&words);
            assert!(result.is_ok(), "{line}\n{words:?}\n{}", result.unwrap_err());
        }
        for inner in command.get_subcommands() {
            understood(&format!("{name} {}", inner.get_name()), inner);
        }
    }

    #[test]
    fn command_lines_of_other_tools_are_understood() {
        let lines = [
            "holm exec -it web sh",
            "holm exec -u www-data -w /srv -e A=b web -- ls -l",
            "holm run -it --rm --image debian13 -e A=b -v /a:/b:ro -p 80:80 -m 1G --cpus 2 sh -c x",
            "holm stop -t 5 web",
            "holm rm -f web",
            "holm ls -a",
            "holm delete web",
            "holm shell web",
            "holm logs -f web",
        ];
        for line in lines {
            let mut words = words(line);
            words[1] = find(&words[1]).expect(line).name.to_owned();
            let result = everything().try_get_matches_from(&words);
            assert!(result.is_ok(), "{line}\n{}", result.unwrap_err());
        }
    }

    #[test]
    fn no_word_means_two_verbs() {
        let mut there = std::collections::HashSet::new();
        for word in all().flat_map(|v| std::iter::once(&v.name).chain(v.aliases)) {
            assert!(there.insert(word), "{word}");
            assert_eq!(crate::words::instead(word), None, "{word} is a verb");
        }
    }

    #[test]
    fn clap_finds_no_mistake() {
        everything().debug_assert();
    }
}
