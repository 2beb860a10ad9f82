//! One file for each verb, and the table of them.

use crate::verb::{Table, Verb};

mod base;
mod complete;
mod completion;
mod console;
mod create;
mod df;
mod doctor;
mod edit;
mod enter;
mod exec;
mod flows;
mod freeze;
mod fsck;
mod gc;
mod help;
mod inspect;
mod kill;
mod launch;
mod logs;
mod ls;
mod man;
mod monitor_ended;
mod rebuild;
mod release;
mod rename;
mod restart;
mod rm;
mod run;
mod set;
mod start;
mod stat;
mod status;
mod stop;
mod thaw;
mod unify;
mod unset;
mod volume;
mod wait;

/// All verbs, in the order of the help.
pub const TABLE: Table = Table(VERBS);

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
    rebuild::VERB,
    wait::VERB,
    run::VERB,
    ls::VERB,
    status::VERB,
    stat::VERB,
    flows::VERB,
    exec::VERB,
    enter::VERB,
    console::VERB,
    logs::VERB,
    inspect::VERB,
    set::VERB,
    unset::VERB,
    edit::VERB,
    base::VERB,
    volume::VERB,
    unify::VERB,
    df::VERB,
    gc::VERB,
    fsck::VERB,
    doctor::VERB,
    release::VERB,
    help::VERB,
    completion::VERB,
    complete::VERB,
    man::VERB,
    monitor_ended::VERB,
];

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    /// The arguments that a shell makes of a line, as far as the examples need one.
    fn arguments(line: &str) -> Vec<String> {
        let mut arguments = vec![String::new()];
        let mut quoted = false;
        for c in line.chars() {
            match c {
                '\'' => quoted = !quoted,
                ' ' if !quoted => arguments.push(String::new()),
                ';' | '|' | '&' | '#' | '>' if !quoted => break,
                _ => arguments.last_mut().expect("there is always one").push(c),
            }
        }
        arguments.retain(|w| !w.is_empty());
        arguments
    }

    #[test]
    fn every_example_is_understood() {
        for verb in TABLE.all().filter(|v| !v.is_hidden()) {
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
            let arguments = arguments(&line[holm..]);
            let result = TABLE.clap().try_get_matches_from(&arguments);
            assert!(result.is_ok(), "{line}\n{arguments:?}\n{}", result.unwrap_err());
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
            let mut arguments = arguments(line);
            arguments[1] = TABLE.find(&arguments[1]).expect(line).name.to_owned();
            let result = TABLE.clap().try_get_matches_from(&arguments);
            assert!(result.is_ok(), "{line}\n{}", result.unwrap_err());
        }
    }

    #[test]
    fn no_name_means_two_verbs() {
        let mut seen = std::collections::HashSet::new();
        for name in TABLE.all().flat_map(|v| std::iter::once(&v.name).chain(v.aliases)) {
            assert!(seen.insert(name), "{name}");
            assert_eq!(crate::other_tools::instead(name), None, "{name} is a verb");
        }
    }

    #[test]
    fn clap_finds_no_mistake() {
        TABLE.clap().debug_assert();
    }
}
