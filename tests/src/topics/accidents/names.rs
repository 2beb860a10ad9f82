//! Names that are invalid, missing or taken; verbs at the wrong time.

use crate::guest::{idle, pid, status};
use crate::sandbox::Sandbox;
use crate::source::system;
use crate::test::{Test, test};
use crate::traces::changes_nothing;

pub const TESTS: &[Test] = &[
    test!(invalid_names).bases(&["busybox"]),
    test!(missing_bases).bases(&["busybox"]),
    test!(a_broken_base_breaks_no_other),
    test!(verbs_at_the_wrong_time).bases(&["busybox"]),
];

/// Every verb names the invalid name, the reason and the rule.
fn invalid_names(sandbox: &mut Sandbox) {
    let long = "x".repeat(300);
    let cases = [
        ("a/b", "not allowed"),
        ("..", "first character"),
        (".", "first character"),
        ("../../etc", "not allowed"),
        (long.as_str(), "too long"),
        ("-dash", "first character"),
        ("", "empty"),
        ("new\nline", "not allowed"),
        ("\u{fc}ber", "not allowed"),
    ];
    changes_nothing(sandbox, |sandbox| {
        for (name, reason) in cases {
            let shown = name.get(..20).unwrap_or(name).replace('\n', "\\n");
            let message = [shown.as_str(), reason, "letters, digits"];
            for verb in ["start", "stop", "kill", "rm", "status", "freeze", "restart"] {
                sandbox.holm(&[verb, "--", name]).refused(&message);
            }
            if !name.starts_with('-') {
                sandbox.holm(&["create", name, "--base", "busybox"]).refused(&message);
                sandbox.holm(&["launch", name, "--base", "busybox"]).refused(&message);
                sandbox.holm(&["exec", name, "true"]).refused(&message);
            }
            let named = format!("--name={name}");
            sandbox.holm(&["run", &named, "--base", "busybox", "--", "true"]).refused(&message);
        }
        // Without the two dashes it is an option that does not exist.
        let outcome = sandbox.holm(&["create", "-dash", "--base", "busybox"]);
        assert_eq!(outcome.code(), 2, "{outcome}");
    });
}

fn missing_bases(sandbox: &mut Sandbox) {
    changes_nothing(sandbox, |sandbox| {
        for verb in [&["create", "box"][..], &["launch", "box"], &["run"]] {
            let args = [verb, &["--base", "busibox", "--net", "none", "--", "true"]].concat();
            sandbox.holm(&args).refused(&["busibox", "holm base ls", "did you mean busybox?"]);
        }
        sandbox.holm(&["base", "rm", "nope"]).refused(&["nope", "holm base ls"]);
    });
    // A guest whose base went away: what it says, and the way out.
    idle(sandbox, "create", "box");
    let link = sandbox.root().join("bases/busybox");
    let target = std::fs::read_link(&link).expect("a shared base");
    std::fs::remove_file(&link).expect("the link goes");
    sandbox.holm(&["start", "box"]).refused(&["busybox", "holm base ls"]);
    sandbox.holm(&["ls"]).ok();
    sandbox.holm(&["status", "box"]).ok();
    std::os::unix::fs::symlink(target, link).expect("and comes back");
    sandbox.holm(&["start", "box"]).ok();
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

/// What a killed import, or somebody who edits the store, can leave.
fn a_broken_base_breaks_no_other(sandbox: &mut Sandbox) {
    let source = system(sandbox, |_| {});
    sandbox.holm(&["base", "import", "good", &source]).ok();
    let bases = sandbox.root().join("bases");
    std::fs::create_dir(bases.join("empty")).expect("a directory");
    std::fs::create_dir(bases.join("garbled")).expect("a directory");
    std::fs::write(bases.join("garbled/base.toml"), "garbage").expect("a file");
    std::fs::create_dir(bases.join("imageless")).expect("a directory");
    std::fs::copy(bases.join("good/base.toml"), bases.join("imageless/base.toml")).expect("a copy");
    let create = |base| sandbox.holm(&["create", "box", "--base", base]);
    create("empty").refused(&["base empty", "base rm empty"]);
    create("garbled").refused(&["garbled", "line 1", "base rm garbled"]);
    create("imageless").refused(&["base imageless", "base rm imageless"]);
    let listed = sandbox.holm(&["base", "ls"]).ok();
    assert!(listed.stdout.contains("good"), "{listed}");
    sandbox.holm(&["run", "--base", "good", "--net", "none", "--", "/bin/sh", "-c", ":"]).ok();
    for base in ["empty", "garbled", "imageless"] {
        sandbox.holm(&["base", "rm", base]).ok();
        assert!(!bases.join(base).exists(), "{base} is gone");
    }
    sandbox.holm(&["run", "--base", "good", "--net", "none", "--", "/bin/sh", "-c", ":"]).ok();
    sandbox.holm(&["base", "rm", "good"]).ok();
}

fn verbs_at_the_wrong_time(sandbox: &mut Sandbox) {
    changes_nothing(sandbox, |sandbox| {
        idle(sandbox, "create", "box");
        let taken = ["create", "box", "--base", "busybox"];
        sandbox.holm(&taken).refused(&["guest box", "already", "holm rm box"]);
        for verb in ["stop", "kill", "freeze", "thaw", "console"] {
            let message = ["guest box", "not running", "holm start box"];
            sandbox.holm(&[verb, "box"]).refused(&message);
        }
        sandbox.holm(&["exec", "box", "true"]).refused(&["guest box", "not running"]);
        sandbox.holm(&["start", "box"]).ok();
        let first = status(sandbox, "box");
        sandbox.holm(&["start", "box"]).refused(&["guest box", "already", "holm restart box"]);
        sandbox.holm(&["rm", "box"]).refused(&["guest box", "running", "holm stop box", "--force"]);
        sandbox.holm(&["rename", "box", "two"]).refused(&["guest box", "running", "holm stop box"]);
        let now = status(sandbox, "box");
        assert_eq!(pid(&now, "init_pid"), pid(&first, "init_pid"), "untouched");
        idle(sandbox, "create", "two");
        sandbox.holm(&["stop", "box"]).ok();
        sandbox.holm(&["rename", "box", "two"]).refused(&["guest two", "already"]);
        sandbox.holm(&["rm", "box", "two"]).ok();
        for verb in ["start", "stop", "rm", "status", "logs"] {
            sandbox.holm(&[verb, "box"]).refused(&["no guest box", "holm create"]);
        }
    });
}
