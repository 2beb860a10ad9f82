//! `holm completion`, and the hidden `holm complete` that its scripts call.
//!
//! The scripts ask `holm` itself, so they know guests, bases and keys, and never grow old.

use clap::{Args, Command};
use holm::config;
use holm::pool::Name;

use super::{Group, Outcome, Run, Verb, all, find};
use crate::context::Context;
use crate::term;

pub const VERB: Verb = Verb::new::<Completion>(
    Group::Host,
    "completion",
    "Print a script that completes holm's words in a shell",
)
.examples(
    "holm completion bash > /etc/bash_completion.d/holm\n\
     holm completion zsh > /usr/local/share/zsh/site-functions/_holm\n\
     holm completion fish > ~/.config/fish/completions/holm.fish",
);

pub const COMPLETE: Verb = Verb::new::<Complete>(Group::Hidden, "complete", "");

const BASH: &str = r#"_holm() {
    local IFS=$'\n'
    COMPREPLY=($(holm complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -F _holm holm
"#;

const ZSH: &str = r#"#compdef holm
_holm() {
    local -a found
    found=(${(f)"$(holm complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    compadd -- $found || _files
}
compdef _holm holm
"#;

const FISH: &str = "complete -c holm -f -a \
    '(holm complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'\n";

/// Arguments.
#[derive(Debug, Args)]
pub struct Completion {
    /// The shell
    #[arg(value_parser = ["bash", "zsh", "fish"])]
    shell: String,
}

impl Run for Completion {
    fn run(self, _: &Context) -> Outcome {
        term::print(match self.shell.as_str() {
            "bash" => BASH,
            "zsh" => ZSH,
            _ => FISH,
        });
        Ok(0)
    }
}

/// The words so far; the last one is being typed.
#[derive(Debug, Args)]
pub struct Complete {
    #[arg(last = true)]
    words: Vec<String>,
}

impl Run for Complete {
    fn run(self, context: &Context) -> Outcome {
        let Some((typed, before)) = self.words.split_last() else { return Ok(0) };
        let mut text = String::new();
        for word in candidates(context, before, typed) {
            if word.starts_with(typed.as_str()) {
                text.push_str(&word);
                text.push('\n');
            }
        }
        term::print(&text);
        Ok(0)
    }
}

fn candidates(context: &Context, before: &[String], typed: &str) -> Vec<String> {
    if before.iter().any(|w| w == "--") {
        return Vec::new();
    }
    let Some(at) = before.iter().position(|w| !w.starts_with('-')) else {
        let names = all().filter(|v| !v.is_hidden()).map(|v| v.name.to_owned());
        return names.chain(options(&crate::cli::root())).collect();
    };
    let Some(verb) = find(&before[at]) else { return Vec::new() };
    let mut command = verb.clap();
    for word in &before[at + 1..] {
        if let Some(inner) = command.find_subcommand(word) {
            command = inner.clone();
        }
    }
    if typed.starts_with('-') {
        return options(&command).into_iter().chain(options(&crate::cli::root())).collect();
    }
    match before.last().map(String::as_str) {
        Some("--base") => return names(context, true),
        Some("--set") => return keys(),
        Some("--signal") => return config::signals().map(str::to_owned).collect(),
        _ => {}
    }
    if command.has_subcommands() {
        return command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    }
    let after_guest = before.len() > at + 1;
    match verb.name {
        "help" => all().filter(|v| !v.is_hidden()).map(|v| v.name.to_owned()).collect(),
        "completion" => ["bash", "zsh", "fish"].map(str::to_owned).to_vec(),
        "set" if after_guest => keys(),
        "unset" | "inspect" if after_guest => {
            keys().into_iter().map(|k| k.trim_end_matches('=').to_owned()).collect()
        }
        "base" => names(context, true),
        _ => names(context, false),
    }
}

fn options(command: &Command) -> Vec<String> {
    let visible = command.get_arguments().filter(|a| !a.is_hide_set());
    visible.filter_map(|a| a.get_long()).map(|long| format!("--{long}")).collect()
}

fn keys() -> Vec<String> {
    config::keys().iter().map(|k| format!("{}=", k.name.trim_end_matches('*'))).collect()
}

/// Bases or guests; none if there is no root yet, which must not be made by a key press.
fn names(context: &Context, bases: bool) -> Vec<String> {
    let there = context.root().is_dir().then(|| context.pool().ok()).flatten();
    let list = there.and_then(|pool| if bases { pool.bases().ok() } else { pool.guests().ok() });
    list.unwrap_or_default().iter().map(Name::to_string).collect()
}
