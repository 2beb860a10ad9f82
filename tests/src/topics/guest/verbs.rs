//! Verbs that change what a guest is: edit, inspect, rename, run --keep, and keys from a file.

use std::process::Stdio;

use serde_json::Value;

use crate::guest::{IDLE, ended, exec, launch_idle, remove, status};
use crate::sandbox::Sandbox;
use crate::terminal::Terminal;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(edit_checks_before_it_saves).bases(&["busybox"]),
    test!(edit_offers_to_edit_again).bases(&["busybox"]),
    test!(inspect_shows_values_and_their_origin).bases(&["busybox"]),
    test!(a_renamed_guest_is_the_same).bases(&["busybox"]),
    test!(run_keep_leaves_the_guest).bases(&["busybox"]),
    test!(ssh_keys_come_from_files).bases(&["busybox"]),
    test!(a_kept_run_can_be_controlled).bases(&["busybox"]),
];

/// An editor: a script that gets the file's name.
fn editor(sandbox: &Sandbox, script: &str) -> String {
    let path = sandbox.root().join("editor");
    std::fs::write(&path, script).expect("a script");
    format!("sh {}", path.display())
}

fn settings(sandbox: &Sandbox) -> String {
    std::fs::read_to_string(sandbox.root().join("guests/box/guest.toml")).expect("settings")
}

fn files(sandbox: &Sandbox) -> Vec<String> {
    let entries = std::fs::read_dir(sandbox.root().join("guests/box")).expect("a directory");
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    // The monitor may start it a little later.
    names.retain(|name| name != "log");
    names.sort();
    names
}

fn edit_checks_before_it_saves(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let before = (settings(sandbox), files(sandbox));
    let edit = |script: &str| {
        let mut command = sandbox.command();
        command.args(["edit", "box"]).env_remove("VISUAL").env("EDITOR", editor(sandbox, script));
        sandbox.run(&mut command)
    };
    let same = edit("exit 0").ok();
    assert!(same.stderr.contains("nothing changed"), "{same}");
    edit("echo memory.limt = 5 >>\"$1\"").refused(&["memory.limit", "nothing was changed"]);
    edit("echo nonsense >>\"$1\"; exit 3").refused(&["nothing was changed"]);
    assert_eq!((settings(sandbox), files(sandbox)), before, "nothing is left of it");

    let done = edit("sed -i '1i pids.limit = 77' \"$1\"; sed -i s/100000/200000/ \"$1\"").ok();
    assert!(done.stdout.contains("in effect now: pids.limit"), "{done}");
    assert!(done.stdout.contains("at the next start: command"), "{done}");
    assert!(settings(sandbox).starts_with("pids.limit = 77\n"));
    assert_eq!(files(sandbox), before.1);
    let forks = "for i in $(seq 100); do sleep 1000 >/dev/null 2>&1 & done; echo all";
    let bounded = exec(sandbox, "box", forks);
    assert_ne!(bounded.stdout, "all\n", "{bounded}");
    sandbox.holm(&["kill", "box"]).ok();
    sandbox.holm(&["rm", "box"]).ok();
}

fn edit_offers_to_edit_again(sandbox: &mut Sandbox) {
    sandbox.holm(&["create", "box", "--base", "busybox"]).ok();
    // Wrong at first, right when called again.
    let script = "grep -q nonsense \"$1\" && sed -i '/nonsense/d; 1i protect = true' \"$1\" || echo nonsense >>\"$1\"";
    let editor = editor(sandbox, script);
    for (answer, status, protected) in [("n\n", 125, false), ("y\n", 0, true)] {
        let mut command = sandbox.command();
        command.args(["edit", "box"]).env("EDITOR", &editor).env("VISUAL", "");
        let mut terminal = Terminal::start(&command);
        terminal.wait_for(sandbox, "Edit again?");
        assert!(terminal.text().contains("nonsense"), "the mistake is shown: {}", terminal.text());
        terminal.type_in(answer);
        assert_eq!(terminal.end(sandbox), Some(status), "{}", terminal.text());
        assert_eq!(settings(sandbox).contains("protect = true"), protected);
        assert!(!files(sandbox).iter().any(|name| name.starts_with("edit")));
    }
    sandbox.holm(&["set", "box", "protect=false"]).ok();
    sandbox.holm(&["rm", "box"]).ok();
}

fn inspect_shows_values_and_their_origin(sandbox: &mut Sandbox) {
    sandbox
        .holm(&["create", "box", "--base", "busybox", "--memory", "64M", "--set", "cpu.cap=0.25"])
        .ok();
    let printed = sandbox.holm(&["inspect", "box", "--json"]).ok().json();
    assert_eq!(printed["name"], "box");
    let all = printed["settings"].as_array().expect("a list");
    let setting = |key: &str| all.iter().find(|s| s["key"] == key).unwrap_or(&Value::Null).clone();
    let line = |key: &str| {
        let text = settings(sandbox);
        text.lines().position(|line| line.starts_with(key)).map(|at| at + 1)
    };
    for (key, value) in [("base", "busybox".into()), ("memory.limit", Value::from(64 << 20))] {
        let printed = setting(key);
        assert_eq!((&printed["value"], &printed["source"]), (&value, &"file".into()), "{printed}");
        assert_eq!(printed["line"].as_u64(), line(key).map(|line| line as u64), "{printed}");
    }
    assert_eq!(setting("memory.limit")["text"], "64M");
    let default = setting("pids.limit");
    assert_eq!((&default["source"], &default["value"]), (&"default".into(), &Value::Null));
    let table = sandbox.holm(&["inspect", "box"]).ok().stdout;
    assert!(
        table.lines().any(|l| l.split_whitespace().eq(["cpu.cap", "0.25", "guest.toml:3"])),
        "{table}"
    );
    assert_eq!(table.lines().count(), all.len() + 1, "a line for each\n{table}");

    std::fs::write(sandbox.root().join("guests/box/guest.toml"), "nonsense").expect("a file");
    sandbox.holm(&["inspect", "box"]).refused(&["guest.toml:1"]);
    sandbox.holm(&["inspect", "nobody"]).refused(&["nobody"]);
    sandbox.holm(&["rm", "box"]).ok();
}

fn a_renamed_guest_is_the_same(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    exec(sandbox, "box", "echo kept >/root/note").ok();
    let before = exec(sandbox, "box", "cat /etc/machine-id /etc/hostname").ok().stdout;
    sandbox.holm(&["rename", "box", "new"]).refused(&["box", "running"]);
    sandbox.holm(&["stop", "box"]).ok();
    sandbox.holm(&["create", "taken", "--base", "busybox"]).ok();
    sandbox.holm(&["rename", "box", "taken"]).refused(&["taken"]);
    sandbox.holm(&["rename", "box", "../new"]).rejected(&["../new"]);
    let stopped = status(sandbox, "box");
    sandbox.holm(&["rename", "box", "new"]).ok();
    assert_eq!(sandbox.holm(&["ls", "-q", "-a"]).ok().stdout, "new\ntaken\n");
    assert_eq!(status(sandbox, "new")["last_run"], stopped["last_run"]);
    sandbox.holm(&["start", "box"]).refused(&["box"]);

    sandbox.holm(&["start", "new"]).ok();
    assert_eq!(exec(sandbox, "new", "cat /root/note").ok().stdout, "kept\n");
    let after = exec(sandbox, "new", "cat /etc/machine-id /etc/hostname").ok().stdout;
    assert_eq!(after, before, "who it is stays the guest's");
    // The old name is free for another guest.
    launch_idle(sandbox, "box", &[]);
    exec(sandbox, "box", "test ! -e /root/note").ok();
    for name in ["box", "new"] {
        remove(sandbox, name);
    }
    sandbox.holm(&["rm", "taken"]).ok();
}

fn run_keep_leaves_the_guest(sandbox: &mut Sandbox) {
    let head = ["run", "--base", "busybox", "--net", "none", "--name", "box"];
    let script = "echo out; echo x >/root/file; exit 3";
    let args = [&head[..], &["--keep", "--", "sh", "-c", script]].concat();
    let outcome = sandbox.holm(&args);
    assert_eq!((outcome.stdout.as_str(), outcome.code()), ("out\n", 3), "{outcome}");
    let kept = status(sandbox, "box");
    assert_eq!((&kept["state"], ended(&kept).as_str()), (&"stopped".into(), "exited 3"));
    sandbox.holm(&args).refused(&["box"]);
    sandbox.holm(&["set", "box", "command=sleep 100000"]).ok();
    sandbox.holm(&["start", "box"]).ok();
    assert_eq!(exec(sandbox, "box", "cat /root/file").ok().stdout, "x\n");
    remove(sandbox, "box");

    let mut plain = sandbox.command();
    plain.args(head).args(["--", "sh", "-c", "exit 3"]).stdin(Stdio::null());
    assert_eq!(sandbox.run(&mut plain).code(), 3);
    assert_eq!(sandbox.holm(&["ls", "-q", "-a"]).ok().stdout, "", "without --keep it is gone");
    // A failed start leaves no guest.
    let mut fails = sandbox.command_with_fault("HOLM_PROBE_NO", "overlay");
    fails.args(head).args(["--keep", "--", "true"]);
    sandbox.run(&mut fails).refused(&["overlay"]);
    assert_eq!(sandbox.holm(&["ls", "-q", "-a"]).ok().stdout, "");
}

fn ssh_keys_come_from_files(sandbox: &mut Sandbox) {
    let (one, two) = ("ssh-ed25519 AAAAC3NzaC1lZDI1 one@here", "ssh-rsa AAAAB3NzaC1yc2E= two@here");
    let file = |name: &str, text: &str| {
        let path = sandbox.root().join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let keys = file("keys", &format!("# of two people\n{one}\n\n  {two}\n"));
    launch_idle(sandbox, "box", &["--ssh-key", &keys]);
    let seen = exec(sandbox, "box", "grep -v '^#' /root/.ssh/authorized_keys").ok();
    assert_eq!(seen.stdout, format!("{one}\n{two}\n"));
    remove(sandbox, "box");
    let create =
        |keys: &str| sandbox.holm(&["create", "box", "--base", "busybox", "--ssh-key", keys]);
    create(&file("empty", "# none\n")).refused(&["empty", "no public key"]);
    create(&file("private", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n")).rejected(&["ssh.keys"]);
    create("/no/such/file").refused(&["/no/such/file"]);
    assert_eq!(sandbox.holm(&["ls", "-q", "-a"]).ok().stdout, "", "nothing was made");
}

fn a_kept_run_can_be_controlled(sandbox: &mut Sandbox) {
    let args = ["run", "--name", "box", "--keep"];
    let mut command = sandbox.command();
    let mut run = command.args([&args[..], &IDLE].concat()).spawn().expect("holm starts");
    sandbox.wait_for("it runs", || {
        sandbox.holm(&["exec", "box", "true"]).status.success().then_some(())
    });
    sandbox.holm(&["set", "box", "pids.limit=60"]).ok();
    sandbox.holm(&["freeze", "box"]).ok();
    sandbox.holm(&["thaw", "box"]).ok();
    sandbox.holm(&["stop", "box"]).ok();
    assert_eq!(run.wait().expect("it ends").code(), Some(128 + 15));
    let after = status(sandbox, "box");
    assert_eq!((&after["state"], ended(&after).as_str()), (&"stopped".into(), "exited 143"));
    sandbox.holm(&["start", "box"]).ok();
    sandbox.holm(&["rm", "--force", "box"]).ok();
}
