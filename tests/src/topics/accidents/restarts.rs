//! `restart` of a guest that could not be started again: it runs on.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::command::Outcome;
use crate::guest::{exec, idle, pid, remove, status};
use crate::host::free_port;
use crate::sandbox::Sandbox;
use crate::source::system;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(without_its_base),
    test!(with_settings_that_cannot_start),
    test!(with_a_network_that_is_taken).bases(&["busybox"]),
    test!(without_a_terminal).bases(&["busybox"]),
];

/// The guest is the same as before, and its commands work.
#[track_caller]
fn runs_on(sandbox: &Sandbox, before: &Value, restart: Outcome, message: &[&str]) {
    restart.refused(&[&["guest box is not restarted, and runs on"], message].concat());
    let now = status(sandbox, "box");
    assert_eq!(pid(&now, "init_pid"), pid(before, "init_pid"), "{now}");
    exec(sandbox, "box", "true").ok();
}

/// Launches guest `box` on a base of its own, without an init.
fn launch_own(sandbox: &Sandbox) -> Value {
    let source = system(sandbox, |_| {});
    sandbox.holm(&["base", "import", "own", &source]).ok();
    let launch = ["launch", "box", "--base", "own", "--net", "none", "--", "/bin/sleep", "1000"];
    sandbox.holm(&launch).ok();
    status(sandbox, "box")
}

fn without_its_base(sandbox: &mut Sandbox) {
    let before = launch_own(sandbox);
    let base = sandbox.root().join("bases/own");
    let image = base.join("image");
    for (from, to, message) in [
        (&base, sandbox.root().join("away"), "no base named own"),
        (&image, base.join("away"), "base own is damaged"),
    ] {
        fs::rename(from, &to).expect("it is moved away");
        let restart = sandbox.holm(&["restart", "box"]);
        runs_on(sandbox, &before, restart, &[message]);
        fs::rename(&to, from).expect("it is moved back");
    }
    fs::rename(&image, base.join("away")).expect("it is moved away");
    fs::write(&image, [0; 4096]).expect("another file");
    let restart = sandbox.holm(&["restart", "box"]);
    runs_on(sandbox, &before, restart, &["cannot mount erofs"]);
    fs::rename(base.join("away"), &image).expect("it is moved back");
    sandbox.holm(&["restart", "box"]).ok();
    assert_ne!(pid(&status(sandbox, "box"), "init_pid"), pid(&before, "init_pid"));
    remove(sandbox, "box");
}

fn with_settings_that_cannot_start(sandbox: &mut Sandbox) {
    let before = launch_own(sandbox);
    let file = sandbox.root().join("guests/box/guest.toml");
    let text = fs::read_to_string(&file).expect("guest.toml");
    let gone = sandbox.root().join("gone").display().to_string();
    for (first_line, message) in [
        ("nonsense", &["guest.toml:1:", "nonsense"][..]),
        (&format!("mounts = [\"{gone}:/mnt\"]"), &["cannot bind", &gone, "does not exist"]),
        ("devices = [\"/dev/nosuch\"]", &["/dev/nosuch", "no such device"]),
        ("init = \"system\"", &["base own has no init"]),
        ("security.caps = [\"CAP_SYS_MODULE\"]", &["CAP_SYS_MODULE"]),
    ] {
        // The base's own init takes no command.
        let rest = text
            .lines()
            .filter(|line| !line.starts_with("command") || !first_line.starts_with("init"));
        let all: Vec<&str> = std::iter::once(first_line).chain(rest).collect();
        fs::write(&file, all.join("\n")).expect("other settings");
        let restart = sandbox.holm(&["restart", "box"]);
        runs_on(sandbox, &before, restart, message);
    }
    fs::write(&file, text).expect("the settings as before");
    sandbox.holm(&["restart", "box"]).ok();
    remove(sandbox, "box");
}

fn with_a_network_that_is_taken(sandbox: &mut Sandbox) {
    for name in ["other", "box"] {
        let args = ["launch", name, "--base", "busybox", "--", "sleep", "100000"];
        sandbox.holm(&args).ok();
    }
    let before = status(sandbox, "box");
    let address = |name: &str| {
        let address = &status(sandbox, name)["addresses"][0];
        address.as_str().unwrap_or_else(|| panic!("no address of {name}")).to_owned()
    };
    // Its own address is no reason.
    let own = address("box");
    let set_own = format!("net.address={own}");
    sandbox.holm(&["set", "box", &set_own]).ok();
    sandbox.holm(&["restart", "box"]).ok();
    let now = status(sandbox, "box");
    assert_ne!(pid(&now, "init_pid"), pid(&before, "init_pid"));
    let taken = address("other");
    // By hand, because `set` refuses it.
    let file = sandbox.root().join("guests/box/guest.toml");
    let text = fs::read_to_string(&file).expect("guest.toml");
    fs::write(&file, text.replace(&own, &taken)).expect("another address");
    let restart = sandbox.holm(&["restart", "box"]);
    runs_on(sandbox, &now, restart, &["the address", &taken, "in use"]);
    sandbox.holm(&["set", "box", &set_own]).ok();
    let port = free_port();
    let listener = TcpListener::bind(("0.0.0.0", port)).expect("it is free");
    sandbox.holm(&["set", "box", &format!("net.publish={port}:80")]);
    let restart = sandbox.holm(&["restart", "box"]);
    runs_on(sandbox, &now, restart, &[&port.to_string(), "choose another port"]);
    drop(listener);
    sandbox.holm(&["restart", "box"]).ok();
    remove(sandbox, "box");
    remove(sandbox, "other");
}

/// `holm` with a kernel.pty.max that the host's own reserve uses up, run by `by`.
fn without_ptys(sandbox: &Sandbox, by: &str, args: &[&str]) -> Outcome {
    let max: PathBuf = sandbox.root().join("pty-max");
    fs::write(&max, "1024\n").expect("a file");
    let script = format!("mount --bind \"$0\" /proc/sys/kernel/pty/max && exec {by} \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).arg(&max).arg(&sandbox.options.holm).args(args);
    command.env("HOLM_ROOT", sandbox.root());
    sandbox.run(&mut command)
}

fn without_a_terminal(sandbox: &mut Sandbox) {
    let message = ["no pseudo-terminal left", "of 1024", "kernel.pty.max"];
    idle(sandbox, "create", "box");
    let full = "strace -f -qq -o /dev/null -P /dev/pts/ptmx -e inject=openat:error=ENOSPC";
    without_ptys(sandbox, full, &["start", "box"]).refused(&message);
    sandbox.holm(&["start", "box"]).ok();
    let before = status(sandbox, "box");
    let restart = without_ptys(sandbox, "", &["restart", "box"]);
    runs_on(sandbox, &before, restart, &message);
    remove(sandbox, "box");
}
