//! Invalid settings, damaged files, impossible times.

use crate::guest::{exec, idle, status};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use crate::traces::changes_nothing;

pub const TESTS: &[Test] = &[
    test!(unknown_keys).bases(&["busybox"]),
    test!(invalid_binds).bases(&["busybox"]),
    test!(invalid_settings_while_the_guest_runs).bases(&["busybox"]),
    test!(an_edit_that_was_killed_is_tidied_up).bases(&["busybox"]),
    test!(a_clock_that_jumped).bases(&["busybox"]),
    test!(files_are_replaced_whole).bases(&["busybox"]),
];

/// An unknown key is wrong usage on the command line, and has a line number in a file.
fn unknown_keys(sandbox: &mut Sandbox) {
    changes_nothing(sandbox, |sandbox| {
        for (setting, reason) in
            [("memory.limt=1G", "memory.limit"), ("colour=red", "lists all keys")]
        {
            let outcome = sandbox.holm(&["create", "box", "--base", "busybox", "--set", setting]);
            assert_eq!(outcome.code(), 2, "{outcome}");
            assert!(outcome.stderr.contains("unknown key"), "{outcome}");
            assert!(outcome.stderr.contains(reason), "{outcome}");
        }
    });
    idle(sandbox, "create", "box");
    let path = sandbox.root().join("guests/box/guest.toml");
    std::fs::write(&path, "base = \"busybox\"\n\n[memory]\nlimt = \"1G\"\n").expect("a file");
    changes_nothing(sandbox, |sandbox| {
        let message = ["guest.toml:4:1", "unknown key", "limit"];
        sandbox.holm(&["start", "box"]).refused(&message);
    });
    sandbox.holm(&["rm", "box"]).ok();
}

/// A file that is being edited is not removed.
fn an_edit_that_was_killed_is_tidied_up(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "box");
    let directory = sandbox.root().join("guests/box");
    let drafts = || {
        let entries = std::fs::read_dir(&directory).expect("the guest's directory").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("edit-")).collect::<Vec<_>>()
    };
    let edit = |editor: &str| {
        let mut command = sandbox.command();
        command.env_remove("VISUAL").env("EDITOR", editor).args(["edit", "box"]);
        sandbox.run(&mut command)
    };
    let killed = edit("kill -9 $PPID; :");
    assert_eq!(killed.code(), 137, "{killed}");
    assert_eq!(drafts().len(), 1, "its draft is left");
    std::fs::write(directory.join("edit-1.toml"), "").expect("the draft of a process that runs");
    assert_eq!(edit(":").ok().stderr, "nothing changed\n");
    assert_eq!(drafts(), ["edit-1.toml"]);
    sandbox.holm(&["rm", "box"]).ok();
}

fn invalid_binds(sandbox: &mut Sandbox) {
    let link = sandbox.root().join("link");
    std::os::unix::fs::symlink("/etc", &link).expect("a link");
    let link = format!("{}:/x", link.display());
    for (mount, message) in [
        ("/no/such:/x", ["/no/such", "does not exist", "mounts"]),
        (link.as_str(), ["link", "symbolic link", "realpath"]),
    ] {
        changes_nothing(sandbox, |sandbox| {
            let run = ["run", "--base", "busybox", "--net", "none", "-v", mount, "--", "true"];
            sandbox.holm(&run).refused(&message);
            let launch = ["launch", "box", "--base", "busybox", "-v", mount, "--", "sleep", "9"];
            sandbox.holm(&launch).refused(&message);
            let _ = sandbox.holm(&["rm", "box"]);
        });
    }
}

/// A running guest does not need its guest.toml: everything works but what reads it.
fn invalid_settings_while_the_guest_runs(sandbox: &mut Sandbox) {
    idle(sandbox, "launch", "box");
    idle(sandbox, "launch", "other");
    let path = sandbox.root().join("guests/box/guest.toml");
    let good = std::fs::read_to_string(&path).expect("its settings");
    let line = good.lines().count() + 1;
    std::fs::write(&path, format!("{good}base = = nonsense\n")).expect("a file");
    let place = format!("guest.toml:{line}:");

    let listed = sandbox.holm(&["ls"]).ok();
    assert!(listed.stdout.contains("settings broken"), "{listed}");
    let shown = status(sandbox, "box");
    assert!(
        shown["health"]["problem"].as_str().is_some_and(|text| text.contains(&place)),
        "{shown}"
    );
    assert_ne!(shown["state"], "stopped", "{shown}");
    assert_eq!(exec(sandbox, "box", "echo alive").ok().stdout, "alive\n");
    sandbox.holm(&["set", "box", "pids.limit=100"]).refused(&["guest.toml", &line.to_string()]);
    sandbox.holm(&["restart", "box"]).refused(&[&place]);
    exec(sandbox, "box", "true").ok(); // it was not stopped for a start that could not be
    sandbox.holm(&["freeze", "box"]).ok();
    sandbox.holm(&["thaw", "box"]).ok();
    sandbox.holm(&["stop", "box"]).ok();
    changes_nothing(sandbox, |sandbox| {
        sandbox.holm(&["start", "box"]).refused(&[&place, "="]);
    });
    std::fs::write(&path, good).expect("a file");
    sandbox.holm(&["start", "box"]).ok();
    sandbox.holm(&["stop", "--all"]).ok();
    std::fs::write(&path, b"\xff\xfe\0").expect("a file");
    sandbox.holm(&["start", "box"]).refused(&["guest.toml"]);
    sandbox.holm(&["rm", "--all"]).ok();
}

/// Times written by a host whose clock was wrong.
fn a_clock_that_jumped(sandbox: &mut Sandbox) {
    idle(sandbox, "launch", "box");
    sandbox.holm(&["stop", "box"]).ok();
    let path = sandbox.root().join("guests/box/last");
    let last = std::fs::read_to_string(&path).expect("how it ended");
    let at = serde_json::from_str::<serde_json::Value>(&last).expect("JSON")["at"].clone();
    for time in ["0", "99999999999", "18446744073709551615"] {
        std::fs::write(&path, last.replace(&at.to_string(), time)).expect("a file");
        let shown = sandbox.holm(&["status", "box"]).ok();
        assert!(shown.stdout.contains("stopped") && !shown.stdout.contains('-'), "{shown}");
        sandbox.holm(&["ls"]).ok();
        sandbox.holm(&["start", "box"]).ok();
        sandbox.holm(&["stop", "box"]).ok();
    }
    for nonsense in ["", "garbage", "{}", "{\"at\":-1}"] {
        std::fs::write(&path, nonsense).expect("a file");
        sandbox.holm(&["status", "box"]).ok();
        sandbox.holm(&["start", "box"]).ok();
        sandbox.holm(&["stop", "box"]).ok();
    }
    sandbox.holm(&["rm", "box"]).ok();
}

/// What is done to what a guest needs.
type Change<'a> = &'a dyn Fn(&Sandbox);

/// Whoever has a file of a guest open when a command changes it, reads the old text to its end:
/// files are replaced, never written in place.
fn files_are_replaced_whole(sandbox: &mut Sandbox) {
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;
    let run_once = |sandbox: &Sandbox| {
        sandbox.holm(&["start", "box"]).ok();
        sandbox.holm(&["stop", "box"]).ok();
    };
    idle(sandbox, "create", "box");
    run_once(sandbox);
    let directory = sandbox.root().join("guests/box");
    let changes: [(&str, Change); 3] = [
        ("guest.toml", &|sandbox| drop(sandbox.holm(&["set", "box", "memory.limit=64M"]).ok())),
        ("guest.toml", &|sandbox| drop(sandbox.holm(&["unset", "box", "memory.limit"]).ok())),
        ("last", &run_once),
    ];
    for (name, change) in changes {
        let path = directory.join(name);
        let before = std::fs::read_to_string(&path).expect("the file");
        let mut open = std::fs::File::open(&path).expect("the file");
        change(sandbox);
        let after = std::fs::read_to_string(&path).expect("the file");
        assert_ne!(after, before, "{name} was changed");
        let mut read = String::new();
        open.read_to_string(&mut read).expect("the old file");
        assert_eq!(read, before, "{name}: the old file is whole");
        let inode = |data: std::fs::Metadata| data.ino();
        let new = std::fs::metadata(&path).map(inode).expect("the new file");
        assert_ne!(new, open.metadata().map(inode).expect("the old file"), "{name}");
    }
    sandbox.holm(&["rm", "box"]).ok();
}
