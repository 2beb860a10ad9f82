//! What `--json` says of real guests, and the tables of `ls`.

use std::process::Command;

use serde_json::{Value, json};

use crate::command::Outcome;
use crate::guest::{idle, launch_idle, status};
use crate::sandbox::Sandbox;
use crate::terminal::Terminal;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(a_running_guest).bases(&["busybox"]),
    test!(a_stopped_guest).bases(&["busybox"]),
    test!(a_base).bases(&["busybox"]),
    test!(errors_have_a_code_and_an_object).bases(&["busybox"]),
    test!(a_log_line_by_line).bases(&["busybox"]),
    test!(ls_filters_and_sorts).bases(&["busybox"]),
    test!(ls_keeps_to_the_terminal).bases(&["busybox"]),
];

/// The keys that a document of docs/json.md has, with what their values may be.
const KEYS: &str = include_str!("../../../../crates/holm-cli/tests/json/v1.txt");

/// Each key of the document `kind` is there with a value of its type, and nothing else is.
#[track_caller]
fn is_as_documented(kind: &str, document: &Value) {
    assert_eq!(document["version"], 1, "{document}");
    let prefix = format!("{kind} ");
    let keys = KEYS.lines().filter_map(|line| line.strip_prefix(&prefix)?.split_once(": "));
    let keys: Vec<(&str, &str)> = keys.collect();
    assert!(!keys.is_empty(), "no {kind}");
    for (path, types) in &keys {
        for value in values(document, path) {
            let value = value.unwrap_or_else(|| panic!("no {path} in {document}"));
            assert!(types.split(" or ").any(|name| has_type(value, name)), "{path}: {value}");
        }
    }
    let documented = |path: &str| path == "version" || keys.iter().any(|key| key.0 == path);
    for path in paths(document, "") {
        assert!(documented(&path), "{path} is not in docs/json.md: {document}");
    }
}

/// What stands at a path; nothing if something above it is null.
fn values<'a>(document: &'a Value, path: &str) -> Vec<Option<&'a Value>> {
    let mut found = vec![Some(document)];
    for part in path.split('.') {
        let (key, items) = part.strip_suffix("[]").map_or((part, false), |key| (key, true));
        let above = found.into_iter().flatten().filter(|value| !value.is_null());
        found = above.map(|value| value.get(key)).collect();
        if items {
            let all = found.into_iter().flatten().filter_map(Value::as_array);
            found = all.flatten().map(Some).collect();
        }
    }
    found
}

/// The paths of all keys, but for what is below settings' own values.
fn paths(value: &Value, above: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (key, value) in value.as_object().into_iter().flatten() {
        let path = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
        all.push(path.clone());
        all.extend(paths(value, &path));
        for item in value.as_array().into_iter().flatten() {
            all.extend(paths(item, &format!("{path}[]")));
        }
    }
    all
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "any" => true,
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "object" => value.is_object(),
        "time" => value.as_str().is_some_and(is_time),
        _ => {
            let item = name.strip_prefix("array of ").and_then(|name| name.strip_suffix('s'));
            let item = item.unwrap_or_else(|| panic!("what is {name}?"));
            value.as_array().is_some_and(|all| all.iter().all(|value| has_type(value, item)))
        }
    }
}

/// `2026-11-22T19:03:25Z`.
fn is_time(text: &str) -> bool {
    let digits = text.replace(|c: char| c.is_ascii_digit(), "0");
    digits == "0000-00-00T00:00:00Z"
}

fn a_running_guest(sandbox: &mut Sandbox) {
    let limits = ["--memory", "64M", "--set", "pids.limit=50", "--cpu", "0.5"];
    let head = ["launch", "box", "--base", "busybox", "-p", "18080:80/tcp"];
    sandbox.holm(&[&head[..], &limits, &["--wait", "--", "sleep", "100000"]].concat()).ok();
    let box_ = status(sandbox, "box");
    is_as_documented("guest", &box_);
    assert_eq!(box_["state"], "ready", "{box_}");
    assert_eq!(box_["arch"], std::env::consts::ARCH, "{box_}");
    let health = &box_["health"];
    assert_eq!(
        (&health["ok"], &health["monitor"], &health["readiness"]),
        (&true.into(), &"present".into(), &"ready".into()),
        "{box_}"
    );
    let limits = &box_["limits"];
    assert_eq!(limits["memory"]["limit_bytes"], 64 << 20, "{box_}");
    assert!(limits["memory"]["used_bytes"].as_u64() > Some(0), "{box_}");
    assert!(limits["memory"]["peak_bytes"].as_u64() >= limits["memory"]["used_bytes"].as_u64());
    assert_eq!((&limits["pids"]["limit"], &limits["cpu"]["cap_cpus"]), (&50.into(), &0.5.into()));
    let port =
        json!({ "host_address": null, "host_port": 18080, "guest_port": 80, "protocol": "tcp" });
    assert_eq!(box_["ports"], json!([port]));
    assert!(box_["addresses"][0].as_str().is_some_and(|a| a.starts_with("10.")), "{box_}");
    let listed = sandbox.holm(&["ls", "--json"]).ok().json();
    is_as_documented("guest", &listed[0]);
    is_as_documented("settings", &sandbox.holm(&["inspect", "box", "--json"]).ok().json());
    let one = sandbox.holm(&["inspect", "box", "memory.limit", "--json"]).ok().json();
    is_as_documented("setting", &one);
    let changed = sandbox.holm(&["set", "box", "memory.limit=32M", "hostname=x", "--json"]).ok();
    is_as_documented("changed", &changed.json());
    assert_eq!(changed.json()["in_effect"], json!(["memory.limit"]));
    assert_eq!(status(sandbox, "box")["limits"]["memory"]["limit_bytes"], 32 << 20);
    is_as_documented("killed", &sandbox.holm(&["stop", "box", "--json"]).ok().json());
    sandbox.holm(&["rm", "box"]).ok();
}

fn a_stopped_guest(sandbox: &mut Sandbox) {
    let args = ["create", "box", "--base", "busybox", "--net", "none", "-m", "8M", "--json"];
    let told = sandbox.holm(&[&args[..], &["--", "sh", "-c", "exit 3"]].concat()).ok().json();
    is_as_documented("named", &told);
    let never = status(sandbox, "box");
    is_as_documented("guest", &never);
    assert_eq!((&never["state"], &never["last_run"]), (&"stopped".into(), &Value::Null));
    assert_eq!(never["limits"]["memory"]["limit_bytes"], 8 << 20, "that of guest.toml");
    is_as_documented("ready", &sandbox.holm(&["start", "box", "--json"]).ok().json());
    let waited = sandbox.holm(&["wait", "box", "--json"]).ok().json();
    is_as_documented("waited", &waited);
    assert_eq!(waited["last_run"]["outcome"], "exited", "{waited}");
    assert_eq!(waited["last_run"]["exit_status"], 3, "{waited}");
    assert_eq!(waited["last_run"]["requested"], false, "{waited}");
    is_as_documented("renamed", &sandbox.holm(&["rename", "box", "new", "--json"]).ok().json());
    is_as_documented("removed", &sandbox.holm(&["rm", "new", "--json"]).ok().json());
    is_as_documented("report", &sandbox.holm(&["doctor", "--json"]).ok().json());
    is_as_documented("released", &sandbox.holm(&["release", "--json"]).ok().json());
}

fn a_base(sandbox: &mut Sandbox) {
    let listed = sandbox.holm(&["base", "ls", "--json"]).ok().json();
    is_as_documented("base", &listed[0]);
    let one = sandbox.holm(&["base", "inspect", "busybox", "--json"]).ok().json();
    is_as_documented("base", &one);
    assert_eq!(one, listed[0]);
}

#[track_caller]
fn is_error(outcome: &Outcome, code: &str, object: &str) {
    let told = outcome.json();
    is_as_documented("failed", &told);
    assert_eq!(
        (&told["error"]["code"], &told["error"]["object"]),
        (&code.into(), &object.into()),
        "{told}"
    );
    assert_eq!(outcome.stderr, "", "{outcome}");
}

fn errors_have_a_code_and_an_object(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "off");
    let holm = |args: &[&str]| sandbox.holm(&[args, &["--json"]].concat());
    is_error(&holm(&["status", "nobody"]), "guest-not-found", "nobody");
    is_error(&holm(&["inspect", "nobody"]), "guest-not-found", "nobody");
    is_error(&holm(&["stop", "off"]), "guest-not-running", "off");
    is_error(&holm(&["start", "../x"]), "name-invalid", "../x");
    is_error(&holm(&["set", "off", "memory.limit=1Q"]), "change-invalid", "memory.limit=1Q");
    assert_eq!(holm(&["set", "off", "memory.limit=1Q"]).json()["name"], "off");
    is_error(&holm(&["base", "rm", "nobase"]), "base-not-found", "nobase");
    is_error(&holm(&["base", "rm", "busybox"]), "base-in-use", "busybox");
    is_error(&holm(&["doctor", "erof"]), "feature-unknown", "erof");
    let told = holm(&["stop", "off", "nobody"]);
    assert_eq!(told.code(), 125, "{told}");
    let told = told.json();
    for (one, (name, code)) in told
        .as_array()
        .expect("an array")
        .iter()
        .zip([("off", "guest-not-running"), ("nobody", "guest-not-found")])
    {
        is_as_documented("failed", one);
        assert_eq!((&one["name"], &one["error"]["code"]), (&name.into(), &code.into()), "{told}");
    }
    std::fs::write(sandbox.root().join("guests/off/guest.toml"), "\nnonsense").expect("our file");
    let told = holm(&["start", "off"]).json();
    assert_eq!(told["error"]["code"], "settings-invalid", "{told}");
    assert_eq!(told["error"]["place"]["line"], 2, "{told}");
    sandbox.holm(&["rm", "off"]).ok();
}

fn a_log_line_by_line(sandbox: &mut Sandbox) {
    let args = ["launch", "box", "--base", "busybox", "--net", "none", "--"];
    sandbox.holm(&[&args[..], &["sh", "-c", "echo one; printf 'two \\033[1m'"]].concat()).ok();
    sandbox.holm(&["wait", "box"]).ok();
    let log = sandbox.holm(&["logs", "-n2", "box", "--json"]).ok();
    let lines: Vec<Value> =
        log.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for line in &lines {
        is_as_documented("line", line);
        assert_eq!(line["name"], "box", "{log}");
    }
    let texts: Vec<&Value> = lines.iter().map(|line| &line["text"]).collect();
    assert_eq!(texts, ["one", "two \u{1b}[1m"], "{log}");
    sandbox.holm(&["rm", "box"]).ok();
}

fn ls_filters_and_sorts(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "web-1", &["--memory", "64M", "--set", "pids.limit=50"]);
    idle(sandbox, "create", "web-2");
    idle(sandbox, "create", "db");
    let names = |args: &[&str]| {
        let listed = sandbox.holm(&[&["ls", "-q"], args].concat()).ok().stdout;
        listed.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(&["--filter", "name=web-*"]), ["web-1", "web-2"]);
    assert_eq!(names(&["--filter", "state=stopped"]), ["db", "web-2"]);
    assert_eq!(names(&["--filter", "state=stopped", "--filter", "name=web-?"]), ["web-2"]);
    assert_eq!(names(&["--filter", "name=db", "--filter", "name=web-1"]), ["db", "web-1"]);
    assert!(names(&["--filter", "base=debian*"]).is_empty());
    assert_eq!(names(&["--sort", "-name"]), ["web-2", "web-1", "db"]);
    assert_eq!(names(&["--sort", "memory"]), ["web-1", "db", "web-2"], "the others use none");
    assert_eq!(names(&["--sort=-memory"]), ["web-1", "db", "web-2"], "they stay at the end");
    let listed = sandbox.holm(&["ls", "--filter", "name=db", "--json"]).ok().json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    let table =
        sandbox.holm(&["ls", "--columns", "memory-limit,name", "--sort", "memory-limit"]).ok();
    let rows: Vec<Vec<&str>> =
        table.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[..2], [["MEMORY-LIMIT", "NAME"], ["64.0M", "web-1"]], "{table}");
    // What is read only when it is asked for.
    for column in ["memory-limit", "memory-peak", "pids-limit", "cpu"] {
        let listed = |pattern| names(&["--filter", &format!("{column}={pattern}")]);
        assert_eq!((listed("?*"), listed("0")), (vec!["web-1".to_owned()], vec![]), "{column}");
    }
    assert_eq!(names(&["--sort", "memory-limit"]), ["web-1", "db", "web-2"]);
    let table = sandbox.holm(&["ls", "--running", "--columns", "pids-limit"]).ok();
    assert_eq!(table.stdout.split_whitespace().last(), Some("50"), "{table}");
    let wrong = sandbox.holm(&["ls", "--sort", "size"]);
    assert_eq!(wrong.code(), 2, "{wrong}");
    assert!(wrong.stderr.contains("there are: name, state"), "{wrong}");
    sandbox.holm(&["rm", "--force", "--all"]).ok();
}

fn ls_keeps_to_the_terminal(sandbox: &mut Sandbox) {
    let long = "a-guest-with-a-name-as-long-as-the-whole-of-a-narrow-terminal";
    idle(sandbox, "create", long);
    let holm = sandbox.command();
    let mut command = Command::new("sh");
    command.args(["-c", "read line; \"$0\" ls"]).arg(holm.get_program());
    command.envs(holm.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut terminal = Terminal::start(&command);
    terminal.resize(24, 60);
    terminal.type_in("\n");
    assert_eq!(terminal.end(sandbox), Some(0));
    terminal.wait_for(sandbox, "stopped");
    let text = terminal.text();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("stopped")).collect();
    let [row] = lines[..] else { panic!("{text:?}") };
    assert!(row.contains("…") && row.contains("busybox"), "{text:?}");
    assert!(!text.contains(long), "{text:?}");
    let table = sandbox.holm(&["ls"]).ok();
    assert!(table.stdout.contains(long), "nothing is cut elsewhere\n{table}");
    sandbox.holm(&["rm", long]).ok();
}
