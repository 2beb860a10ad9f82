//! Guests that most tests are about: on the busybox base, without a network.

use serde_json::Value;

use crate::command::Outcome;
use crate::sandbox::Sandbox;

/// Settings of a guest that does nothing until it is stopped.
pub const IDLE: [&str; 7] = ["--base", "busybox", "--net", "none", "--", "sleep", "100000"];

/// Makes or launches a guest that does nothing.
pub fn idle(sandbox: &Sandbox, verb: &str, name: &str) {
    sandbox.holm(&[&[verb, name][..], &IDLE].concat()).ok();
}

/// A guest that does nothing until it is stopped.
pub fn launch_idle(sandbox: &Sandbox, name: &str, settings: &[&str]) {
    let head = ["launch", name, "--base", "busybox", "--net", "none"];
    let args: Vec<&str> = [&head, settings, &["--", "sleep", "100000"]].concat();
    sandbox.holm(&args).ok();
}

/// What `holm status --json` says.
pub fn status(sandbox: &Sandbox, name: &str) -> Value {
    sandbox.holm(&["status", name, "--json"]).ok().json()
}

/// Runs a shell script in a running guest.
pub fn exec(sandbox: &Sandbox, name: &str, script: &str) -> Outcome {
    sandbox.holm(&["exec", name, "sh", "-c", script])
}

/// How the last run ended, from the guest's `status`: `exited 3`, `killed SIGKILL`, `rebooted`.
pub fn ended(status: &Value) -> String {
    let last = &status["last_run"];
    let outcome = last["outcome"].as_str().unwrap_or("no last run");
    match (last["exit_status"].as_u64(), last["signal"].as_str()) {
        (Some(status), _) => format!("{outcome} {status}"),
        (None, Some(signal)) => format!("{outcome} {signal}"),
        (None, None) => outcome.to_owned(),
    }
}

/// What is stored about a guest's last run.
pub fn stored_last_run(sandbox: &Sandbox, name: &str) -> Option<Value> {
    let path = sandbox.root().join("guests").join(name).join("last");
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

/// A process id on the host, from the guest's `status`: `init_pid` or `monitor_pid`.
pub fn pid(status: &Value, whose: &str) -> i32 {
    let pid = status[whose].as_i64().unwrap_or_else(|| panic!("no {whose} in {status}"));
    i32::try_from(pid).expect("a process id")
}

/// Stops and removes a guest.
pub fn remove(sandbox: &Sandbox, name: &str) {
    sandbox.holm(&["stop", name]).ok();
    sandbox.holm(&["rm", name]).ok();
}
