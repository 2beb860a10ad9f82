//! Guests from start to end, as a person meets them.

pub mod clock;
pub mod inside;
pub mod life;
pub mod limits;
pub mod monitor;
pub mod mounts;
pub mod network;
pub mod restart;
pub mod rights;
pub mod settings;
pub mod several;
pub mod verbs;

use serde_json::Value;

use crate::command::Outcome;
use crate::sandbox::Sandbox;

/// A guest that does nothing until it is stopped.
fn launch_idle(sandbox: &Sandbox, name: &str, settings: &[&str]) {
    let head = ["launch", name, "--base", "busybox", "--net", "none"];
    let words: Vec<&str> = [&head, settings, &["--", "sleep", "100000"]].concat();
    sandbox.holm(&words).ok();
}

/// What `holm status --json` says.
fn status(sandbox: &Sandbox, name: &str) -> Value {
    sandbox.holm(&["status", name, "--json"]).ok().json()
}

/// Runs a shell script in a running guest.
fn exec(sandbox: &Sandbox, name: &str, script: &str) -> Outcome {
    sandbox.holm(&["exec", name, "sh", "-c", script])
}

/// Process ids on the host, as `status` names them.
fn pid(status: &Value, whose: &str) -> i32 {
    let pid = status["state"][whose].as_i64().unwrap_or_else(|| panic!("no {whose} in {status}"));
    i32::try_from(pid).expect("a process id")
}

/// Stops and removes a guest.
fn remove(sandbox: &Sandbox, name: &str) {
    sandbox.holm(&["stop", name]).ok();
    sandbox.holm(&["rm", name]).ok();
}
