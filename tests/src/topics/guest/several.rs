//! One command, several guests.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::command::Outcome;
use crate::guest::{idle, launch_idle};
use crate::sandbox::Sandbox;
use crate::source::{fake_systemd, system};
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(all_skips_guests_in_the_wanted_state).bases(&["busybox"]),
    test!(all_includes_guests_of_run).bases(&["busybox"]),
    test!(json_is_an_array_for_several).bases(&["busybox"]),
    test!(status_answers_for_each).bases(&["busybox"]),
    test!(none_is_removed_if_one_runs).bases(&["busybox"]),
    test!(few_boot_at_once_under_pressure),
];

const CREATE: [&str; 9] =
    ["create", "off", "--base", "busybox", "--net", "none", "--", "sleep", "100000"];

/// The values of `key` in an array of guests, by name.
fn each(outcome: &Outcome, key: &str) -> Vec<Value> {
    let printed = outcome.json();
    let all = printed.as_array().unwrap_or_else(|| panic!("no array\n{outcome}"));
    all.iter().map(|one| one[key].clone()).collect()
}

fn all_skips_guests_in_the_wanted_state(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "on", &[]);
    sandbox.holm(&CREATE).ok();
    let state = |wanted: &str| {
        let listed = sandbox.holm(&["ls", "--json"]).ok();
        assert_eq!(each(&listed, "name"), ["off", "on"]);
        each(&listed, "state").iter().map(|state| *state == wanted).collect::<Vec<_>>()
    };
    sandbox.holm(&["freeze", "--all"]).ok();
    assert_eq!(state("frozen"), [false, true]);
    sandbox.holm(&["thaw", "--all"]).ok();
    assert_eq!(state("stopped"), [true, false]);
    sandbox.holm(&["start", "--all"]).ok();
    assert_eq!(state("stopped"), [false, false]);
    for verb in ["stop", "kill", "freeze", "thaw"] {
        sandbox.holm(&[verb, "--all"]).ok();
    }
    assert_eq!(state("stopped"), [true, true]);
    // A guest that is named gets an error.
    sandbox.holm(&["freeze", "on", "off"]).refused(&["on is not running", "off is not running"]);
    sandbox.holm(&["rm", "--all"]).ok();
}

/// Nothing runs after `holm stop --all`.
fn all_includes_guests_of_run(sandbox: &mut Sandbox) {
    let mut command = sandbox.command();
    command.args(["run", "--name", "once", "--base", "busybox", "--net", "none"]);
    command.args(["--", "sh", "-c", "echo here; sleep 1000"]).stdout(Stdio::piped());
    let mut run = command.spawn().expect("holm run starts");
    let mut line = String::new();
    let output = run.stdout.as_mut().expect("its output is a pipe");
    BufReader::new(output).read_line(&mut line).expect("its output can be read");
    assert_eq!(line, "here\n");
    sandbox.holm(&CREATE).ok();
    let printed = sandbox.holm(&["status", "--all", "--json"]).ok();
    assert_eq!(each(&printed, "name"), ["off", "once"]);
    sandbox.holm(&["release"]).refused(&["another holm command"]);
    sandbox.holm(&["rm", "--all"]).ok();
    sandbox.holm(&["stop", "--all"]).ok();
    assert_eq!(run.wait().expect("it ends").code(), Some(128 + 15));
    sandbox.holm(&["release"]).ok();
}

fn json_is_an_array_for_several(sandbox: &mut Sandbox) {
    sandbox.holm(&CREATE).ok();
    sandbox.holm(&["set", "off", "autostart=true"]).ok();
    let printed = |args: &[&str]| sandbox.holm(&[args, &["--json"]].concat()).ok().json();
    let named = json!({ "version": 1, "name": "off" });
    let started = json!({ "version": 1, "name": "off", "ready": null });
    assert_eq!(printed(&["start", "off"]), started);
    assert_eq!(printed(&["freeze", "--all"]), json!([named]));
    assert_eq!(printed(&["thaw", "off", "off"]), json!([named]));
    let stopped = json!({ "version": 1, "name": "off", "killed": false });
    assert_eq!(printed(&["stop", "--all"]), json!([stopped]));
    assert_eq!(printed(&["start", "--autostart"]), json!([started]));
    assert_eq!(printed(&["start", "--autostart"]), json!([]), "it runs");
    let (kept, removed): ([&str; 0], [&str; 0]) = ([], []);
    assert_eq!(
        printed(&["rm", "--force", "off"]),
        json!({ "version": 1, "name": "off", "kept_volumes": kept, "removed_volumes": removed })
    );
    assert_eq!(printed(&["stop", "--all"]), json!([]));

    let places = [("one", "1"), ("two", "2")];
    for (name, place) in places {
        sandbox.holm(&["create", name, "--base", "busybox", "--net", "none", "--", "true"]).ok();
        sandbox.holm(&["set", name, &format!("autostart={place}")]).ok();
    }
    std::fs::write(sandbox.root().join("guests/one/guest.toml"), "nonsense").expect("our file");
    let outcome = sandbox.holm(&["start", "--autostart", "--json"]);
    assert_eq!(outcome.code(), 125, "one cannot be started\n{outcome}");
    assert_eq!(each(&outcome, "name"), ["one", "two"], "{outcome}");
    let errors = each(&outcome, "error");
    assert_eq!(errors[0]["code"], "settings-invalid", "{outcome}");
    assert!(errors[1].is_null(), "{outcome}");
    sandbox.holm(&["wait", "two"]).ok();
    sandbox.holm(&["rm", "--all"]).ok();
}

fn status_answers_for_each(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "on", &[]);
    sandbox.holm(&CREATE).ok();
    let printed = sandbox.holm(&["status", "off", "nobody", "on", "--json"]);
    assert_eq!(printed.code(), 125, "{printed}");
    assert_eq!(each(&printed, "name"), ["off", "nobody", "on"]);
    let errors = each(&printed, "error");
    assert_eq!(
        (&errors[1]["code"], &errors[1]["object"]),
        (&"guest-not-found".into(), &"nobody".into())
    );
    assert_eq!(each(&printed, "state")[0], "stopped");
    assert_eq!(each(&sandbox.holm(&["status", "--all", "--json"]).ok(), "name"), ["off", "on"]);

    let text = sandbox.holm(&["status", "nobody", "off", "on"]).refused(&["nobody"]).stdout;
    let (first, second) = text.split_once("\n\n").expect("a line between them");
    assert!(first.starts_with("name ") && first.contains("off") && second.contains("on"), "{text}");
    let one = sandbox.holm(&["status", "on"]).ok().stdout;
    assert!(one.starts_with("name ") && one.ends_with('\n') && !one.contains("\n\n"), "{one}");
    sandbox.holm(&["rm", "--force", "--all"]).ok();
}

fn none_is_removed_if_one_runs(sandbox: &mut Sandbox) {
    for name in ["one", "two"] {
        idle(sandbox, "create", name);
    }
    idle(sandbox, "launch", "zoo");
    let reason = ["guests are running, so none is removed: zoo", "holm stop zoo"];
    for args in [&["rm", "--all"][..], &["rm", "one", "two", "zoo"]] {
        sandbox.holm(args).refused(&reason);
        let left = sandbox.holm(&["ls", "--json"]).ok().json();
        assert_eq!(left.as_array().map(Vec::len), Some(3), "{left}");
    }
    sandbox.holm(&["set", "two", "protect=true"]).ok();
    sandbox.holm(&["stop", "zoo"]).ok();
    sandbox.holm(&["rm", "one", "two"]).refused(&["guest two is protected"]);
    sandbox.holm(&["status", "one"]).ok();
    sandbox.holm(&["rm", "one", "nosuch"]).refused(&["there is no guest nosuch"]);
    sandbox.holm(&["status", "one"]).ok();
    sandbox.holm(&["set", "two", "protect=false"]).ok();
    sandbox.holm(&["rm", "--all"]).ok();
}

/// Processes that compute for a while; killed when this is dropped.
struct Load(Vec<Child>);

impl Load {
    fn new(count: usize) -> Self {
        let mut busy = Command::new("timeout");
        busy.args(["20", "sh", "-c", "while :; do :; done"]);
        Self((0..count).map(|_| busy.spawn().expect("the host has timeout")).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It passes the signal on to the shell.
            let pid = rustix::process::Pid::from_child(child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let _ = child.wait();
        }
    }
}

/// Their inits never say that they are ready.
fn few_boot_at_once_under_pressure(sandbox: &mut Sandbox) {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let source = system(sandbox, |dir| fake_systemd(dir, "#!/bin/sh\nexec sleep 100000\n"));
    sandbox.holm(&["base", "import", "odd", &source]).ok();
    for number in 0..2 * cpus + 4 {
        let name = format!("box{number}");
        sandbox.holm(&["create", &name, "--base", "odd", "--net", "none"]).ok();
    }
    let running = || {
        let listed = sandbox.holm(&["ls", "--json"]).ok().json();
        let all = listed.as_array().expect("an array");
        all.iter().filter(|guest| guest["state"] != "stopped").count()
    };
    let load = Load::new(4 * cpus);
    let mut command = sandbox.command();
    let mut start = command.args(["start", "--all"]).spawn().expect("our own program");
    sandbox.wait_for("the first guests", || (running() >= 2 * cpus).then_some(()));
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(running(), 2 * cpus, "one more only when one is ready");
    start.kill().expect("it runs");
    start.wait().expect("our own child");
    drop(load);
    sandbox.holm(&["rm", "--force", "--all"]).ok();
}
