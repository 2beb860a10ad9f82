//! The examples of `holm help VERB`, which the manual page has too.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{home, run};
use crate::host::free_port;
use crate::sandbox::Sandbox;

/// What an example is about before it runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guests {
    /// The example makes it.
    None,
    Stopped,
    Running,
    Frozen,
}

/// Verbs that make their guest or need it in a certain state; the others need it running.
const GUESTS: [(&str, Guests); 8] = [
    ("create", Guests::None),
    ("launch", Guests::None),
    ("run", Guests::None),
    ("release", Guests::Stopped),
    ("rename", Guests::Stopped),
    ("rm", Guests::Stopped),
    ("start", Guests::Stopped),
    ("thaw", Guests::Frozen),
];

/// How examples begin that are not run, and why.
const NOT_RUN: [(&str, &str); 7] = [
    ("holm base import debian13", "takes minutes and the network; tests of bases do it"),
    ("holm man | man", "not every host has man"),
    ("echo 'apt-get update'", "needs the network"),
    ("holm console", "needs a terminal; tests of the monitor do it"),
    ("holm logs -n 20 -f", "goes on until the guest ends"),
    ("holm run --base debian13 --name built", "needs the network"),
    ("holm run --base debian13 -v ./src", "the shared base has no make"),
];

/// Guests that the examples speak of.
const SYSTEM: &str = "web";
const COMMANDS: [(&str, &str); 4] =
    [("db", ""), ("cache", ""), ("build", "true"), ("test", "true")];

pub fn every_example_of_the_help_runs(sandbox: &mut Sandbox) {
    let home = home(sandbox);
    let port = free_port();
    prepare_files(sandbox, &home);
    let manual = sandbox.holm(&["man"]).ok().stdout.replace("\\-", "-").replace("\\e", "\\");
    let mut run_lines = 0;
    for path in verbs(sandbox) {
        let help = [&["help"], path.split(' ').collect::<Vec<_>>().as_slice()].concat();
        let help = sandbox.holm(&help).ok().stdout;
        let lines = examples(&help);
        assert!(!lines.is_empty(), "holm help {path} has no example:\n{help}");
        for line in lines {
            assert!(path.contains(' ') || manual.contains(line), "the manual lacks: {line}");
            if !NOT_RUN.iter().any(|(begin, _)| line.starts_with(begin)) {
                check(sandbox, &home, &path, &here(line, port));
                run_lines += 1;
            }
        }
        sandbox.holm(&["rm", "--force", "--all"]).ok();
    }
    assert!(run_lines > 60, "{run_lines} examples");
}

fn check(sandbox: &Sandbox, home: &Path, verb: &str, line: &str) {
    let guests = GUESTS.iter().find(|(name, _)| *name == verb).map_or(Guests::Running, |(_, g)| *g);
    if verb.starts_with("base") {
        prepare_bases(sandbox, home);
    }
    prepare(sandbox, guests);
    let outcome = run(sandbox, home, line);
    assert!(outcome.status.success(), "help {verb}: {line}\n{outcome}");
    if line.contains("holm base import theirs") {
        let started = sandbox.holm(&["launch", "--wait", "copy", "--base", "theirs"]).ok();
        assert!(started.stderr.is_empty(), "{line}: it is ready\n{started}");
        sandbox.holm(&["rm", "--force", "copy"]).ok();
    }
}

/// What the example does, with files, ports and programs that are here.
fn here(line: &str, port: u16) -> String {
    let line = line.split(" > ").next().unwrap_or(line);
    line.replace("8080:", &format!("{port}:"))
        .replace("status nginx", "status systemd-journald")
        .replace("/srv/lab", "lab")
        .replace("ssh host ", "holm exec web -- ")
        .replace("EDITOR=nano", "EDITOR=true")
        .replace("import busybox busybox", "import plain busybox")
}

/// All verbs, and those below them: `base import`.
fn verbs(sandbox: &Sandbox) -> Vec<String> {
    let overview = sandbox.holm(&["help"]).ok().stdout;
    let overview = overview.split("\nOptions:").next().unwrap_or_default();
    let mut all = listed(overview);
    let below = sandbox.holm(&["help", "base"]).ok().stdout;
    let below = below.split("Commands:\n").nth(1).expect("the verbs of base");
    let below = listed(below.split("\n\n").next().unwrap_or_default());
    all.extend(below.iter().filter(|verb| *verb != "help").map(|verb| format!("base {verb}")));
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

/// The guests of the examples, all in the state that the verb needs.
fn prepare(sandbox: &Sandbox, guests: Guests) {
    if guests == Guests::None {
        sandbox.holm(&["rm", "--force", "--all"]).ok();
        return;
    }
    let present = sandbox.holm(&["ls", "-q"]).ok().stdout;
    let is_there = |name: &str| present.lines().any(|line| line == name);
    if is_there("shop") {
        sandbox.holm(&["rm", "shop"]).ok();
    }
    if !is_there(SYSTEM) {
        sandbox.holm(&["create", SYSTEM, "--base", "debian13"]).ok();
    }
    for (name, command) in COMMANDS.iter().filter(|(name, _)| !is_there(name)) {
        let mut create = vec!["create", *name, "--base", "busybox"];
        create.extend((!command.is_empty()).then_some(["--", command]).iter().flatten());
        sandbox.holm(&create).ok();
    }
    match guests {
        Guests::None => {}
        Guests::Stopped => {
            sandbox.holm(&["kill", "--all"]).ok();
        }
        Guests::Running => {
            sandbox.holm(&["thaw", "--all"]).ok();
            let running = sandbox.holm(&["ls", "-q", "--running"]).ok().stdout;
            if !running.lines().any(|line| line == SYSTEM) {
                sandbox.holm(&["start", "--wait", SYSTEM]).ok();
                let user = "id alice || useradd --create-home --shell /bin/bash alice";
                sandbox.holm(&["exec", SYSTEM, "sh", "-c", user]).ok();
            }
            sandbox.holm(&["start", "--all"]).ok();
        }
        Guests::Frozen => {
            sandbox.holm(&["start", "--all"]).ok();
            sandbox.holm(&["freeze", "--all"]).ok();
        }
    }
}

/// The bases that the examples remove are there, and those that they make are not.
fn prepare_bases(sandbox: &Sandbox, home: &Path) {
    let present = sandbox.holm(&["base", "ls", "-q"]).ok().stdout;
    let is_there = |name: &str| present.lines().any(|line| line == name);
    let system = home.join("system");
    for base in ["old", "older", "oldest"].into_iter().filter(|name| !is_there(name)) {
        sandbox.holm(&["base", "import", base, system.to_str().expect("a path")]).ok();
    }
    for base in ["mine", "plain", "theirs"].into_iter().filter(|name| is_there(name)) {
        sandbox.holm(&["base", "rm", base]).ok();
    }
}

/// Files and a Holm root that the examples speak of.
fn prepare_files(sandbox: &Sandbox, home: &Path) {
    let system = home.join("system");
    fs::create_dir_all(system.join("sbin")).expect("a directory");
    fs::write(system.join("sbin/init"), "#!/bin/sh\n").expect("a file");
    let archive = home.join("rootfs.tar.zst");
    let mut tar = Command::new("tar");
    let status = tar.arg("-caf").arg(&archive).arg("-C").arg(&system).arg(".").status();
    assert!(status.expect("tar").success());
    let (lab, system) = (home.join("lab"), system.to_str().expect("a path"));
    sandbox.holm(&["--root", lab.to_str().expect("a path"), "base", "import", "old", system]).ok();
}
