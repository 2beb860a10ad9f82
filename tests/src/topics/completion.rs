//! Shell completion of names of guests and bases.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::options::Lane;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(names_are_completed_where_they_belong).bases(&["busybox"]),
    test!(bash_is_given_names).bases(&["busybox"]),
    test!(zsh_completes).bases(&["busybox"]).not_in(Lane::Vm, SHELLS),
    test!(fish_completes).bases(&["busybox"]).not_in(Lane::Vm, SHELLS),
];

const SHELLS: &str = "shells are the same there, and start slowly";

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

/// A directory with `holm`, as the shells' scripts call it by its name.
fn directory_with_holm(sandbox: &Sandbox) -> PathBuf {
    let directory = sandbox.root().join("tmp/shell");
    std::fs::create_dir_all(&directory).expect("a directory");
    std::os::unix::fs::symlink(&sandbox.options.holm, directory.join("holm")).expect("a link");
    directory
}

/// A shell with `holm` in its path, and with the sandbox's root.
fn shell(sandbox: &Sandbox, program: &str, directory: &Path) -> Command {
    let mut command = Command::new(program);
    let path = std::env::var("PATH").expect("a path");
    command
        .env("PATH", format!("{}:{path}", directory.display()))
        .env("HOLM_ROOT", sandbox.root())
        .env("HOME", directory)
        .env("TERM", "dumb");
    command
}

/// Lines as they are typed, and what the Tab key makes of them in zsh.
const TYPED: [(&str, &str); 12] = [
    ("holm statu", "holm status "),
    ("holm start --wa", "holm start --wait "),
    ("holm stop w", "holm stop web "),
    ("holm stop --timeout 5s db w", "holm stop --timeout 5s db web "),
    ("holm create new --base b", "holm create new --base busybox "),
    ("holm create new --base=b", "holm create new --base=busybox "),
    ("holm set web base=b", "holm set web base=busybox "),
    ("holm set web net.mode=p", "holm set web net.mode=private "),
    // More follows.
    ("holm set web memory.li", "holm set web memory.limit="),
    ("holm set web mem", "holm set web memory."),
    ("holm base import new /et", "holm base import new /etc/"),
    ("holm launch new --mount=/et", "holm launch new --mount=/etc/"),
];

/// The real completion, on a terminal: as its first line is edited, zsh completes what a variable
/// has, and tells what became of it. The script is loaded in both ways that zsh knows.
fn zsh_completes(sandbox: &mut Sandbox) {
    const STARTUP: &str = "autoload -Uz compinit; fpath=($FUNCTIONS $fpath); compinit -u -D
        [[ -n $FUNCTIONS ]] || source <(holm completion zsh)
        zle-line-init() {
            BUFFER=$TYPED; CURSOR=$#BUFFER; zle expand-or-complete
            print -rn -- $BUFFER > $COMPLETED; exit
        }
        zle -N zle-line-init\n";
    create(sandbox);
    let directory = directory_with_holm(sandbox);
    let functions = directory.join("functions");
    std::fs::create_dir(&functions).expect("a directory");
    let script = sandbox.holm(&["completion", "zsh"]).ok().stdout;
    std::fs::write(functions.join("_holm"), script).expect("a function");
    std::fs::write(directory.join(".zshrc"), STARTUP).expect("a file");
    let completed = directory.join("completed");
    for (functions, lines) in [(functions.as_path(), &TYPED[..]), (Path::new(""), &TYPED[..1])] {
        for (typed, expected) in lines {
            // script(1) gives it a terminal.
            let mut zsh = shell(sandbox, "script", &directory);
            zsh.args(["-qec", "zsh -i", "/dev/null"]).env("ZDOTDIR", &directory);
            zsh.env("FUNCTIONS", functions).env("TYPED", typed).env("COMPLETED", &completed);
            let outcome = sandbox.run(&mut zsh);
            let line = std::fs::read_to_string(&completed).unwrap_or_default();
            assert_eq!(line, *expected, "{outcome}");
            std::fs::remove_file(&completed).expect("a file");
        }
    }
    sandbox.holm(&["rm", "web"]).ok();
}

fn fish_completes(sandbox: &mut Sandbox) {
    create(sandbox);
    let directory = directory_with_holm(sandbox);
    for (typed, expected) in [
        ("holm sta", "start stat status "),
        ("holm start --wa", "--wait "),
        ("holm stop ", "web "),
        ("holm stop --timeout 5s db w", "web "),
        ("holm create new --base b", "busybox "),
        ("holm create new --base=b", "--base=busybox "),
        ("holm set web base=b", "base=busybox "),
        ("holm set web net.mode=p", "net.mode=private "),
        ("holm set web mem", "memory.limit= memory.lock= memory.shm= memory.swap= "),
        ("holm base import new /et", "/etc/ "),
    ] {
        let mut fish = shell(sandbox, "fish", &directory);
        let script = "holm completion fish | source; complete -C $argv[1]";
        fish.args(["--no-config", "-c", script, typed]);
        let outcome = sandbox.run(&mut fish).ok();
        assert_eq!(outcome.stdout.replace('\n', " "), expected, "{typed}: {outcome}");
    }
    sandbox.holm(&["rm", "web"]).ok();
}
