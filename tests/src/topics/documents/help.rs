//! The examples of `holm help VERB`, which the manual page has too.

use super::guests::{prepare_files, prepare_for};
use super::reader::Reader;
use crate::sandbox::Sandbox;

pub fn every_example_of_the_help_runs(sandbox: &mut Sandbox) {
    let reader = Reader::new(sandbox);
    prepare_files(sandbox, &reader);
    reader.has_debian();
    let manual = sandbox.holm(&["man"]).ok().stdout.replace("\\-", "-").replace("\\e", "\\");
    let mut lines_run = 0;
    for path in verbs(sandbox) {
        let help = [&["help"], path.split(' ').collect::<Vec<_>>().as_slice()].concat();
        let help = sandbox.holm(&help).ok().stdout;
        let lines = examples(&help);
        assert!(!lines.is_empty(), "holm help {path} has no example:\n{help}");
        for line in lines {
            assert!(path.contains(' ') || manual.contains(line), "the manual lacks: {line}");
            prepare_for(sandbox, &reader, &path);
            reader.follow(&format!("holm help {path}"), line);
            lines_run += 1;
            if line.contains("holm base import theirs") {
                imported_base_boots(sandbox);
            }
        }
        sandbox.holm(&["rm", "--force", "--all"]).ok();
    }
    assert!(lines_run > 70, "{lines_run} examples");
}

fn imported_base_boots(sandbox: &Sandbox) {
    let started = sandbox.holm(&["launch", "--wait", "copy", "--base", "theirs"]).ok();
    assert!(started.stderr.is_empty(), "it is ready\n{started}");
    sandbox.holm(&["rm", "--force", "copy"]).ok();
}

/// All verbs, and those below them: `base import`.
pub fn verbs(sandbox: &Sandbox) -> Vec<String> {
    let overview = sandbox.holm(&["help"]).ok().stdout;
    let overview = overview.split("\nOptions:").next().unwrap_or_default();
    let mut all = listed(overview);
    for noun in ["base", "volume"] {
        let below = sandbox.holm(&["help", noun]).ok().stdout;
        let below = below.split("Commands:\n").nth(1).expect("the verbs of a noun");
        let below = listed(below.split("\n\n").next().unwrap_or_default());
        let below = below.iter().filter(|verb| *verb != "help");
        all.extend(below.map(|verb| format!("{noun} {verb}")));
    }
    all
}

/// The first word of each indented line.
fn listed(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("  "));
    lines
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect()
}

/// The lines of a help's examples.
fn examples(help: &str) -> Vec<&str> {
    let text = help.split("Examples:\n").nth(1).unwrap_or_default();
    text.lines()
        .map_while(|line| line.strip_prefix("  ").filter(|line| !line.trim().is_empty()))
        .collect()
}
