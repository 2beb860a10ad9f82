//! The commands that stand in sentences and tables: `holm freeze web`.

use super::guests::{prepare_files, prepare_for};
use super::help::verbs;
use super::reader::Reader;
use super::{DOCUMENTS, OTHER_DOCUMENTS, README, inline};
use crate::sandbox::Sandbox;

/// Programs whose commands a reader would type.
const TYPED: [&str; 4] = ["holm ", "nft list ", "ip ", "curl "];

/// What begins like a command and is none to type.
const NOT_TYPED: [(&str, &str); 3] = [
    ("holm must be run as root", "a message: `messages` compares it"),
    ("holm monitor-ended", "what a monitor runs"),
    ("curl ", "nginx answers in the tour"),
];

/// What names an option, and what a reader would type.
const UNFINISHED: [(&str, &str); 3] = [
    ("holm --root DIR", "holm --root lab ls"),
    ("holm start --wait", "holm start --wait web"),
    ("holm kill --signal HUP", "holm kill --signal HUP web"),
];

pub fn every_command_in_a_sentence_runs(sandbox: &mut Sandbox) {
    let reader = Reader::new(sandbox);
    prepare_files(sandbox, &reader);
    reader.has_debian();
    let verbs = verbs(sandbox);
    let mut lines_run = 0;
    for (document, line) in commands() {
        let words = line.strip_prefix("holm ").unwrap_or("status web");
        if verbs.iter().any(|verb| verb == words) {
            continue; // The verb alone is a name; `help` has lines of it.
        }
        let words = words.strip_prefix("--root ROOT ").unwrap_or(words);
        let verb = words.split(' ').next().unwrap_or_default();
        assert!(verb.starts_with('-') || verbs.iter().any(|v| v == verb), "{document}: {line}");
        prepare_for(sandbox, &reader, verb);
        if line.contains(" exec g ") {
            boot_runit(sandbox, &reader);
        }
        let whole = UNFINISHED.iter().find(|(begin, _)| *begin == line);
        reader.follow(document, whole.map_or(line, |(_, whole)| *whole));
        lines_run += 1;
        if verb == "set" || verb == "unset" {
            // Its settings would be those of the next line's guest.
            sandbox.holm(&["rm", "--force", "web"]).ok();
        }
    }
    sandbox.holm(&["rm", "--force", "--all"]).ok();
    assert!(lines_run > 30, "{lines_run} commands");
}

/// All such commands, each once.
fn commands() -> Vec<(&'static str, &'static str)> {
    let documents = [("README.md", README)].into_iter().chain(DOCUMENTS).chain(OTHER_DOCUMENTS);
    let mut found: Vec<(&str, &str)> = Vec::new();
    for (document, text) in documents {
        for line in inline(text) {
            let is_typed = TYPED.iter().any(|begin| line.starts_with(begin))
                && !NOT_TYPED.iter().any(|(begin, _)| line.starts_with(begin));
            if is_typed && !found.iter().any(|(_, other)| *other == line) {
                found.push((document, line));
            }
        }
    }
    found
}

/// A guest `g` with runit, far enough to be told which services it has.
fn boot_runit(sandbox: &Sandbox, reader: &Reader) {
    reader
        .follow("all", "holm base import runit debootstrap:trixie+runit-init,cron,openssh-server");
    sandbox.holm(&["launch", "g", "--base", "runit"]).ok();
    sandbox.wait_for("runit runs services", || {
        let runs = sandbox.holm(&["exec", "g", "--", "pidof", "runsvdir"]);
        runs.status.success().then_some(())
    });
}
