//! The host's clock is set while guests run. The tests do not set it: they change the times that
//! Holm has recorded.

use std::path::PathBuf;

use rustix::fs::{XattrFlags, getxattr, setxattr};
use serde_json::Value;

use crate::guest::{launch_idle, remove, status, stored_last_run};
use crate::host;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(ages_survive_a_set_clock).bases(&["busybox"]),
    test!(restarts_survive_a_set_clock).bases(&["busybox"]),
];

/// How far the clock jumps, in seconds: a year, as on a machine without a battery-backed clock.
const JUMPS: [i64; 2] = [365 * 86400, -365 * 86400];

fn shift(time: &mut Value, seconds: i64) {
    *time = (time.as_i64().expect("a time") + seconds).into();
}

/// The cgroup with the guest's run record.
fn state_directory(sandbox: &mut Sandbox, name: &str) -> PathBuf {
    let end = format!("/holm-{}/{name}", sandbox.instance().expect("a number"));
    let bears = |path: &PathBuf| getxattr(path, "trusted.holm", &mut [0u8; 1 << 14]).is_ok();
    let directories = host::cgroups().into_iter();
    directories
        .filter(|path| path.to_string_lossy().ends_with(&end))
        .find(bears)
        .expect("a cgroup with a state")
}

fn ages_survive_a_set_clock(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let directory = state_directory(sandbox, "box");
    let mut bytes = [0u8; 1 << 14];
    let length = getxattr(&directory, "trusted.holm", &mut bytes).expect("a state");
    let noted: Value = serde_json::from_slice(&bytes[..length]).expect("JSON");
    for jump in JUMPS {
        let mut state = noted.clone();
        // When the clock is set forward, earlier times look old.
        shift(&mut state["started"], -jump);
        setxattr(&directory, "trusted.holm", state.to_string().as_bytes(), XattrFlags::REPLACE)
            .expect("a new state");
        let listed = sandbox.holm(&["ls"]).ok();
        assert!(listed.stdout.trim_end().ends_with(" s"), "up for a few seconds\n{listed}");
    }
    remove(sandbox, "box");
}

fn restarts_survive_a_set_clock(sandbox: &mut Sandbox) {
    let args = ["launch", "box", "--base", "busybox", "--net", "none", "--set", "restart=always"];
    sandbox.holm(&[&args[..], &["--", "sh", "-c", "echo begin; exit 1"]].concat()).ok();
    for jump in JUMPS {
        sandbox.wait_for("it waits to be started again", || {
            let status = status(sandbox, "box");
            (status["pending_restart"].is_object() && status["state"] == "restarting").then_some(())
        });
        let begun = begun(sandbox);
        let mut last = stored_last_run(sandbox, "box").expect("it has ended");
        shift(&mut last["at"], -jump);
        shift(&mut last["pending"]["at"], -jump);
        write_last(sandbox, &last);
        let said = sandbox.holm(&["status", "box"]).ok();
        assert!(!said.stdout.contains("days\n"), "no wait of days\n{said}");
        sandbox.wait_for("it has begun again", || (self::begun(sandbox) > begun).then_some(()));
    }
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

fn begun(sandbox: &Sandbox) -> usize {
    sandbox.holm(&["logs", "box"]).ok().stdout.matches("begin").count()
}

/// Replaces the file atomically, as Holm does.
fn write_last(sandbox: &Sandbox, last: &Value) {
    let path = sandbox.root().join("guests/box/last");
    let new = path.with_extension("new");
    std::fs::write(&new, last.to_string()).expect("a file");
    std::fs::rename(&new, &path).expect("in its place");
}
