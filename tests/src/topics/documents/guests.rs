//! The guests that examples speak of, in the state that a verb needs.

use std::fs;
use std::process::Command;

use super::reader::Reader;
use crate::sandbox::Sandbox;

/// What an example is about before it runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Guests {
    /// The example makes it.
    None,
    Stopped,
    Running,
    Frozen,
}

/// Verbs that make their guest or need it in a certain state; the others need it running.
const GUESTS: [(&str, Guests); 10] = [
    ("create", Guests::None),
    ("launch", Guests::None),
    ("run", Guests::None),
    ("volume", Guests::None),
    ("rebuild", Guests::Stopped),
    ("release", Guests::Stopped),
    ("rename", Guests::Stopped),
    ("rm", Guests::Stopped),
    ("start", Guests::Stopped),
    ("thaw", Guests::Frozen),
];

/// Guests that the examples speak of.
const SYSTEM: &str = "web";
const COMMANDS: [(&str, &str); 4] =
    [("db", ""), ("cache", ""), ("build", "true"), ("test", "true")];

/// What earlier examples have made of them.
const RENAMED: [&str; 2] = ["shop", "www"];

/// Prepares what examples of `verb` are about.
pub fn prepare_for(sandbox: &Sandbox, reader: &Reader, verb: &str) {
    if verb.starts_with("base") {
        prepare_bases(sandbox, reader);
    }
    if matches!(verb, "volume inspect" | "volume rm" | "volume set") {
        prepare_volumes(sandbox);
    }
    let guests = GUESTS.iter().find(|(name, _)| *name == verb).map_or(Guests::Running, |(_, g)| *g);
    prepare(sandbox, guests);
}

/// The guests of the examples, all in the state that the verb needs.
fn prepare(sandbox: &Sandbox, guests: Guests) {
    if guests == Guests::None {
        sandbox.holm(&["rm", "--force", "--all"]).ok();
        return;
    }
    let present = sandbox.holm(&["ls", "-q"]).ok().stdout;
    let is_there = |name: &str| present.lines().any(|line| line == name);
    for name in RENAMED.into_iter().filter(|name| is_there(name)) {
        sandbox.holm(&["rm", name]).ok();
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
        Guests::Running => run(sandbox),
        Guests::Frozen => {
            sandbox.holm(&["start", "--all"]).ok();
            sandbox.holm(&["freeze", "--all"]).ok();
        }
    }
}

fn run(sandbox: &Sandbox) {
    sandbox.holm(&["thaw", "--all"]).ok();
    let running = sandbox.holm(&["ls", "-q", "--running"]).ok().stdout;
    if !running.lines().any(|line| line == SYSTEM) {
        sandbox.holm(&["start", "--wait", SYSTEM]).ok();
        let user = "id alice || useradd --create-home --shell /bin/bash alice";
        sandbox.holm(&["exec", SYSTEM, "sh", "-c", user]).ok();
    }
    sandbox.holm(&["start", "--all"]).ok();
}

/// The bases that the examples remove are there, and those that they make are not.
fn prepare_bases(sandbox: &Sandbox, reader: &Reader) {
    let present = sandbox.holm(&["base", "ls", "-q"]).ok().stdout;
    let is_there = |name: &str| present.lines().any(|line| line == name);
    let system = reader.home.join("system");
    for base in ["old", "older", "oldest"].into_iter().filter(|name| !is_there(name)) {
        sandbox.holm(&["base", "import", base, system.to_str().expect("a path")]).ok();
    }
    for base in ["mine", "plain", "theirs"].into_iter().filter(|name| is_there(name)) {
        sandbox.holm(&["base", "rm", base]).ok();
    }
}

/// The volumes that the examples look at and remove are there.
fn prepare_volumes(sandbox: &Sandbox) {
    let present = sandbox.holm(&["volume", "ls", "-q"]).ok().stdout;
    let is_there = |name: &str| present.lines().any(|line| line == name);
    for volume in ["pg", "old", "older", "oldest"].into_iter().filter(|name| !is_there(name)) {
        sandbox.holm(&["volume", "create", volume]).ok();
    }
}

/// Files and a Holm root that the examples speak of.
pub fn prepare_files(sandbox: &Sandbox, reader: &Reader) {
    let system = reader.home.join("system");
    fs::create_dir_all(system.join("sbin")).expect("a directory");
    fs::write(system.join("sbin/init"), "#!/bin/sh\n").expect("a file");
    let archive = reader.home.join("rootfs.tar.zst");
    let mut tar = Command::new("tar");
    let status = tar.arg("-caf").arg(&archive).arg("-C").arg(&system).arg(".").status();
    assert!(status.expect("tar").success());
    let (lab, system) = (reader.home.join("lab"), system.to_str().expect("a path"));
    sandbox.holm(&["--root", lab.to_str().expect("a path"), "base", "import", "old", system]).ok();
}
