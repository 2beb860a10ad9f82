//! The directory of a Holm root: who makes it, and who may look into it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use crate::command::Outcome;
use crate::host;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(looking_makes_nothing),
    test!(looking_takes_no_instance_number).bases(&["busybox"]),
    test!(a_directory_with_other_content),
    test!(users_of_the_host_make_nothing),
    test!(users_of_the_host_read_no_objects),
    test!(a_directory_of_a_user),
];

/// Every verb that makes nothing, with whether it lists what there is.
const VERBS: &[(&[&str], bool)] = &[
    (&["ls"], true),
    (&["ls", "--json"], true),
    (&["status", "--all"], true),
    (&["start", "--all"], true),
    (&["start", "--autostart"], true),
    (&["stop", "--all"], true),
    (&["base", "ls"], true),
    (&["base", "ls", "--json"], true),
    (&["status", "web"], false),
    (&["logs", "web"], false),
    (&["inspect", "web"], false),
    (&["wait", "web"], false),
    (&["start", "web"], false),
    (&["exec", "web", "true"], false),
    (&["console", "web"], false),
    (&["rename", "web", "other"], false),
    (&["set", "web", "memory.limit=64M"], false),
    (&["rm", "web"], false),
    (&["edit", "web"], false),
    (&["base", "inspect", "web"], false),
    (&["base", "rm", "web"], false),
    (&["release"], false),
];

fn at(sandbox: &Sandbox, root: &Path, args: &[&str]) -> Outcome {
    sandbox.run(sandbox.command().env("HOLM_ROOT", root).args(args))
}

/// Neither where there is nothing, nor in an empty directory.
fn looking_makes_nothing(sandbox: &mut Sandbox) {
    let (nowhere, empty) = (sandbox.root().join("no/where"), sandbox.root().join("empty"));
    fs::create_dir(&empty).expect("a directory");
    for (args, lists) in VERBS {
        let message = ["no Holm root", &nowhere.to_string_lossy(), "base import"];
        let refused = at(sandbox, &nowhere, args);
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert!(refused.code() == 125 && message.iter().all(|m| said.contains(m)), "{refused}");
        assert!(!sandbox.root().join("no").exists(), "{args:?} made a root");
        let found = at(sandbox, &empty, args);
        if *lists {
            let empty = if args.contains(&"--json") { "[]" } else { "" };
            let printed = found.ok().stdout;
            let is_head = printed.starts_with("NAME") && printed.lines().count() == 1;
            assert!(printed.trim() == empty || is_head, "{args:?}: {printed}");
        } else {
            found.refused(&["no Holm root", "base import"]);
        }
        assert_eq!(fs::read_dir(&empty).expect("a directory").count(), 0, "{args:?}");
    }
    for line in [&["status", ""][..], &["create", "x", "--base", ""]] {
        for root in [&nowhere, &empty] {
            let args = [&["complete", "--"], line].concat();
            assert_eq!(at(sandbox, root, &args).ok().stdout, "");
        }
    }
    assert!(!sandbox.root().join("no").exists(), "completion made a root");
    assert_eq!(fs::read_dir(&empty).expect("a directory").count(), 0);
    let of_us = |(_, root): &(u32, std::path::PathBuf)| root.starts_with(sandbox.root());
    assert!(!host::instances().iter().any(of_us), "an instance number was taken");
}

/// Also where there is a root without one: it was released.
fn looking_takes_no_instance_number(sandbox: &mut Sandbox) {
    sandbox.holm(&["create", "box", "--base", "busybox"]).ok();
    sandbox.holm(&["release"]).ok();
    for args in [
        &["ls"][..],
        &["ls", "--json"],
        &["status", "box"],
        &["status", "--all"],
        &["inspect", "box"],
        &["logs", "box"],
        &["base", "ls"],
        &["base", "inspect", "busybox"],
        &["complete", "--", "status", ""],
    ] {
        sandbox.holm(args).ok();
        assert_eq!(sandbox.instance(), None, "{args:?}");
    }
    assert!(sandbox.holm(&["ls", "-q"]).ok().stdout.contains("box"));
    sandbox.holm(&["start", "box"]).ok();
    assert!(sandbox.instance().is_some());
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

/// A directory of something else becomes no root: its owner chose its mode and its content.
fn a_directory_with_other_content(sandbox: &mut Sandbox) {
    let other = sandbox.root().join("other");
    fs::create_dir(&other).expect("a directory");
    fs::write(other.join("letter"), "dear").expect("a file");
    let below = other.join("holm").display().to_string();
    let message = ["not a Holm root", "not empty", &below];
    at(sandbox, &other, &["base", "import", "x", "busybox"]).refused(&message);
    at(sandbox, &other, &["create", "x", "--base", "b"]).refused(&message);
    at(sandbox, &other, &["ls"]).refused(&["no Holm root"]);
    assert_eq!(fs::read_dir(&other).expect("a directory").count(), 1);
}

/// Runs a command as a user of the host.
fn as_user(sandbox: &Sandbox, args: &[&str]) -> Outcome {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    sandbox.run(command.args(args))
}

/// Neither in a root that Holm made, nor in one whose mode is looser: an empty directory, or a root
/// that was opened to them.
fn users_of_the_host_read_no_objects(sandbox: &mut Sandbox) {
    // Not below the sandbox's own root, which is closed.
    let place = std::env::temp_dir().join(format!("holm-place-{}", std::process::id()));
    let (new, empty) = (place.join("new"), place.join("empty"));
    fs::create_dir_all(&empty).expect("a directory");
    let open =
        |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o755)).expect("mode");
    let source = place.join("source");
    fs::create_dir(&source).expect("a directory");
    fs::write(source.join("shadow"), "secret\n".repeat(100)).expect("a file");
    let source = source.display().to_string();
    let users_read = |root: &Path| {
        let objects = fs::read_dir(root.join("objects")).expect("objects").flatten();
        let files = objects.filter_map(|d| fs::read_dir(d.path()).ok()).flatten().flatten();
        let paths: Vec<String> = files.map(|file| file.path().display().to_string()).collect();
        assert_eq!(paths.len(), 1, "{paths:?}");
        as_user(sandbox, &["cat", &paths[0]]).status.success()
    };
    for path in [&place, &empty] {
        open(path);
    }
    for root in [&new, &empty] {
        at(sandbox, root, &["base", "import", "x", &source]).ok();
        assert!(!users_read(root), "{}", root.display());
    }
    open(&new);
    assert!(users_read(&new), "the test opens it");
    let said = at(sandbox, &new, &["base", "import", "y", &source]).ok().stderr;
    assert!(said.contains("0700 now"), "{said}");
    assert!(!users_read(&new), "the next command closes it");
    for root in [&new, &empty] {
        at(sandbox, root, &["release"]).ok();
    }
    fs::remove_dir_all(&place).expect("the roots go");
}

/// He could exchange what Holm executes.
fn a_directory_of_a_user(sandbox: &mut Sandbox) {
    let root = sandbox.root().join("his");
    fs::create_dir(&root).expect("a directory");
    chown(&root, Some(65534), Some(65534)).expect("an owner");
    let import = at(sandbox, &root, &["base", "import", "x", "busybox"]);
    import.refused(&["uid 65534", "chown root:root", &root.to_string_lossy()]);
    assert_eq!(fs::read_dir(&root).expect("a directory").count(), 0);
}

fn users_of_the_host_make_nothing(sandbox: &mut Sandbox) {
    // A directory in which anybody may make something.
    let open = std::env::temp_dir().join(format!("holm-root-{}", std::process::id()));
    for args in [&["ls"][..], &["base", "import", "x", "busybox"], &["create", "x", "--base", "b"]]
    {
        let holm = sandbox.options.holm.to_string_lossy();
        let root = open.to_string_lossy();
        let called = as_user(sandbox, &[&[&*holm, "--root", &root][..], args].concat());
        called.refused(&["must be run as root"]);
        assert!(!open.exists(), "{args:?}");
    }
}
