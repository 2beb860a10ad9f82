//! Shell completion of names of guests and bases.

use std::process::Command;

use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(names_are_completed_where_they_belong).bases(&["busybox"]),
    test!(bash_is_given_names).bases(&["busybox"]),
];

fn create(sandbox: &Sandbox) {
    sandbox.holm(&["create", "web", "--base", "busybox", "--", "true"]).ok();
}

fn names_are_completed_where_they_belong(sandbox: &mut Sandbox) {
    create(sandbox);
    let root = sandbox.root().to_string_lossy().into_owned();
    // The root is told by the line alone.
    let completions = |typed: &[&str]| {
        let mut command = sandbox.command();
        command.env_remove("HOLM_ROOT").args(["complete", "--", "--root", &root]).args(typed);
        sandbox.run(&mut command).ok().stdout
    };
    let guests: [&[&str]; 5] = [
        &["stop", ""],
        &["stop", "--timeout", "5s", "db", "w"],
        &["rename", ""],
        &["exec", "--user", "root", ""],
        &["-q", "set", ""],
    ];
    for typed in guests {
        assert_eq!(completions(typed), "web\n", "{typed:?}");
    }
    let bases: [&[&str]; 3] =
        [&["create", "new", "--base", ""], &["run", "--image", "b"], &["base", "rm", "old", ""]];
    for typed in bases {
        assert_eq!(completions(typed), "busybox\n", "{typed:?}");
    }
    for typed in [&["set", "web", "base=b"][..], &["create", "new", "--set", "base="]] {
        assert_eq!(completions(typed), "base=busybox\n", "{typed:?}");
    }
    let neither: [&[&str]; 10] = [
        &["create", ""],
        &["launch", "w"],
        &["rename", "web", ""],
        &["base", "import", ""],
        &["base", "import", "new", ""],
        &["doctor", "w"],
        &["create", "new", "--ssh-key", ""],
        &["create", "new", "--mount", ""],
        &["run", "--init", "w"],
        &["--root", ""],
    ];
    for typed in neither {
        assert_eq!(completions(typed), "", "{typed:?}");
    }
    sandbox.holm(&["rm", "web"]).ok();
}

/// bash splits `--root=DIR` and `base=b` into three words each.
fn bash_is_given_names(sandbox: &mut Sandbox) {
    create(sandbox);
    let root = sandbox.root().to_string_lossy().into_owned();
    let completion = sandbox.holm(&["completion", "bash"]).ok().stdout;
    for (line, expected) in [
        ("stop ''", "web\n"),
        ("set web base = b", "busybox\n"),
        ("set web base =", "busybox\n"),
        ("set web net.mode = p", "private\n"),
        ("set web mem", "memory.limit= memory.swap= memory.shm= memory.lock=\n"),
    ] {
        let script = format!(
            "holm() {{ \"$HOLM\" \"$@\"; }}; . /dev/stdin; \
             COMP_WORDS=(holm --root = \"$ROOT\" {line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _holm; echo \"${{COMPREPLY[*]}}\""
        );
        let mut bash = Command::new("bash");
        bash.args(["-c", &script]).env("HOLM", &sandbox.options.holm).env("ROOT", &root);
        let outcome = crate::command::run(&mut bash, completion.as_bytes(), sandbox.limit()).ok();
        assert_eq!(outcome.stdout, expected, "{line}: {outcome}");
    }
    sandbox.holm(&["rm", "web"]).ok();
}
