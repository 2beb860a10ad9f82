//! `holm man`: the manual page, made from what clap knows.

use std::fmt::Write;

use clap::{Arg, Args, Command};
use holm::config::{self, Effect};

use crate::context::Context;
use crate::term;
use crate::verb::{Explain, Group, Outcome, Table, Verb};

pub const VERB: Verb = Verb::explaining::<Man>(Group::Host, "man", "Print the manual page")
    .examples("holm man | man -l -\nholm man > /usr/local/share/man/man1/holm.1");

/// No arguments.
#[derive(Debug, Args)]
pub struct Man {}

impl Explain for Man {
    fn run(self, _: &Context, table: Table) -> Outcome {
        term::print(&page(table));
        Ok(0)
    }
}

/// The page in man(7).
fn page(table: Table) -> String {
    let mut root = table.clap();
    root.build();
    let mut page = format!(
        ".TH HOLM 1 \"\" \"holm {}\"\n.SH NAME\nholm \\- {}\n.SH SYNOPSIS\n.B holm\n[OPTIONS] VERB ...\n",
        env!("CARGO_PKG_VERSION"),
        roff(&root.get_about().map(ToString::to_string).unwrap_or_default()),
    );
    page.push_str(".SH OPTIONS\n");
    options(&mut page, &root);
    page.push_str(".SH VERBS\n");
    for verb in table.all().filter(|v| !v.is_hidden()) {
        if let Some(command) = root.find_subcommand_mut(verb.name) {
            section(&mut page, command, verb.name);
            if !verb.aliases.is_empty() {
                put(&mut page, &format!(".PP\nAlso: {}.\n", roff(&verb.aliases.join(", "))));
            }
            examples(&mut page, verb.examples);
        }
    }
    page.push_str(".SH KEYS OF GUEST.TOML\n");
    for key in config::keys() {
        let effect = if key.effect == Effect::Live { "at once" } else { "at the next start" };
        let text = format!("{}. Takes effect {effect}. Default: {}.", key.help, key.default);
        put(&mut page, &format!(".TP\n.B {}\n{}\n", roff(key.name), roff(&text)));
    }
    page.push_str(
        ".SH EXIT STATUS\n0 if all went well, 2 if the command line was wrong, 125 if holm failed.\n\
         exec and run end with the status of the command: 126 if it cannot be run, 127 if there is none.\n\
         doctor ends with 1 if no guest can run on this host.\n\
         .SH OUTPUT FOR PROGRAMS\n\\-\\-json prints documents with a version; docs/json.md in Holm's sources lists their keys\n\
         and the codes of errors. One name gives an object; several, \\-\\-all and ls give an array.\n\
         .SH FILES\n.TP\n.I /var/lib/holm\nThe Holm root: bases, guests, their objects and logs.\n\
         .TP\n.I /var/lib/holm/guests/NAME/guest.toml\nThe settings of a guest; edit, set and unset change them.\n\
         .TP\n.I /var/lib/holm/guests/NAME/disk/upper\nWhat a guest has changed of its base.\n\
         .TP\n.I /var/lib/holm/guests/NAME/log\nWhat it wrote to its console; logs prints it.\n\
         .TP\n.I /run/holm\nThe sockets of monitors; nothing in it outlives a boot.\n\
         .SH ENVIRONMENT\n.TP\n.B HOLM_ROOT\nWhere everything is kept, as \\-\\-root.\n\
         .TP\n.B HOLM_IMPORT\nThe program holm-import, if it is neither beside holm nor in ../libexec/holm.\n\
         .TP\n.B VISUAL, EDITOR\nThe editor of edit, the first that is set; else sensible\\-editor or vi.\n\
         .TP\n.B NO_COLOR\nNo colours.\n",
    );
    page
}

/// A verb, and the verbs below it (`base import`).
fn section(page: &mut String, command: &mut Command, name: &str) {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    put(page, &format!(".SS \"holm {name}\"\n.B {}\n.PP\n{}.\n", roff(&usage), roff(&about)));
    options(page, command);
    let below: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    for inner in below {
        if let Some(command) = command.find_subcommand_mut(&inner) {
            section(page, command, &format!("{name} {inner}"));
        }
    }
}

fn options(page: &mut String, command: &Command) {
    let own = |a: &&Arg| !a.is_hide_set() && (!a.is_global_set() || command.get_name() == "holm");
    for arg in command.get_arguments().filter(own) {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        put(page, &format!(".TP\n.B {}\n{}\n", roff(&spelling(arg)), roff(&help)));
    }
}

/// All names of an option, and its value: `-b, --base, --image <BASE>`.
fn spelling(arg: &Arg) -> String {
    let whole = arg.to_string();
    let Some(long) = arg.get_long() else { return whole };
    let value = whole.strip_prefix("--").and_then(|rest| rest.strip_prefix(long)).unwrap_or("");
    let short = arg.get_short().map(|short| format!("-{short}"));
    let aliases = arg.get_visible_aliases().unwrap_or_default();
    let long = std::iter::once(long).chain(aliases).map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    names.join(", ") + value
}

fn examples(page: &mut String, text: &str) {
    if !text.is_empty() {
        put(page, &format!(".PP\nExamples:\n.PP\n.nf\n{}\n.fi\n", roff(text)));
    }
}

fn put(page: &mut String, text: &str) {
    // Writing to a string cannot fail.
    let _ = page.write_str(text);
}

/// Text in which nothing is a request or an escape.
fn roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    let lines = escaped
        .lines()
        .map(|l| if l.starts_with(['.', '\'']) { format!("\\&{l}") } else { l.to_owned() });
    lines.collect::<Vec<_>>().join("\n")
}
