//! The process beside each running guest: console, log, its own death, and the new monitor after
//! it.

mod adopted;
mod bounds;
mod console;
mod killed;
mod late;
mod log;
mod reuse;
mod unreachable;

use holm::monitor::Ended;

use crate::guest::{status, stored_last_run};
use crate::sandbox::Sandbox;
use crate::test::Test;

pub fn tests() -> Vec<Test> {
    [
        console::TESTS,
        log::TESTS,
        bounds::TESTS,
        adopted::TESTS,
        unreachable::TESTS,
        killed::TESTS,
        late::TESTS,
        reuse::TESTS,
    ]
    .concat()
}

/// Makes and starts guest `g` without a network, on the busybox base.
pub fn launch(sandbox: &Sandbox, options: &[&str], script: &str) {
    let args = ["launch", "g", "--base", "busybox", "--net", "none"];
    sandbox.holm(&[&args, options, &["--", "sh", "-c", script]].concat()).ok();
}

pub fn logs(sandbox: &Sandbox) -> String {
    sandbox.holm(&["logs", "g"]).ok().stdout
}

/// Waits until the guest is stopped; returns how it ended.
pub fn end(sandbox: &Sandbox) -> Ended {
    sandbox.wait_for("the guest ends", || {
        let status = status(sandbox, "g");
        // The guest is stopped before its end is recorded: an adopting monitor waits until init is
        // reaped.
        let last = stored_last_run(sandbox, "g").filter(|_| status["state"] == "stopped")?;
        Some(Ended::parse(last["ended"].as_str()?).expect("an end"))
    })
}

pub const COUNT: &str = "i=0; while :; do echo line $i; i=$((i+1)); sleep 0.02; done";
