//! Commands that are killed while they limit a guest's disk: the next one completes that.

use holm_sys::project::Usage;

use super::filesystem::{Kind, fill, launch, loop_devices, on, quota};
use crate::guest::status;
use crate::process::Stopped;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[test!(at_an_image), test!(at_quota_of_ext4), test!(at_quota_of_xfs)];

const CREATE: [&str; 8] =
    ["create", "box", "--base", "own", "--net", "none", "--set", "disk.size=32M"];

fn at_an_image(sandbox: &mut Sandbox) {
    on(Kind::Plain, sandbox, |sandbox| killed(sandbox, Kind::Plain, &["disk-image"]));
}

fn at_quota_of_ext4(sandbox: &mut Sandbox) {
    on(Kind::Ext4, sandbox, |sandbox| killed(sandbox, Kind::Ext4, &["disk-claimed"]));
}

fn at_quota_of_xfs(sandbox: &mut Sandbox) {
    on(Kind::Xfs, sandbox, |sandbox| killed(sandbox, Kind::Xfs, &["disk-claimed"]));
}

fn killed(sandbox: &Sandbox, kind: Kind, steps: &[&str]) {
    let command = ["--", "sleep", "100000"];
    for step in steps.iter().chain(&["disk-limited"]) {
        let create = [&CREATE[..], &command].concat();
        Stopped::new(sandbox, &create, step).kill_it();
        sandbox.holm(&["start", "box"]).ok();
        assert!(fill(sandbox, "box", "/big") <= 32, "limited after {step}");
        sandbox.holm(&["rm", "--force", "box"]).ok();
        nothing_left(sandbox, kind);
        // Removed at once.
        Stopped::new(sandbox, &create, step).kill_it();
        sandbox.holm(&["rm", "box"]).ok();
        nothing_left(sandbox, kind);
    }
    // Killed between the steps of a start.
    sandbox.holm(&[&CREATE[..], &command].concat()).ok();
    for step in ["root", "files", "socket"] {
        Stopped::new(sandbox, &["start", "box"], step).kill_it();
        sandbox.wait_for("the killed start is undone", || {
            sandbox.holm(&["ls"]).ok();
            (status(sandbox, "box")["state"] == "stopped").then_some(())
        });
        sandbox.holm(&["start", "box"]).ok();
        sandbox.holm(&["kill", "box"]).ok();
    }
    sandbox.holm(&["rm", "box"]).ok();
    nothing_left(sandbox, kind);
    launch(sandbox, "box", &["disk.size=32M"]);
    sandbox.holm(&["rm", "--force", "box"]).ok();
    nothing_left(sandbox, kind);
}

fn nothing_left(sandbox: &Sandbox, kind: Kind) {
    sandbox.wait_for("no loop device", || (loop_devices(sandbox) == 0).then_some(()));
    if kind.has_quota() {
        // The files of a killed guest go with the last of its mounts, in the background.
        sandbox.wait_for("no quota", || (quota(sandbox, 1) == Usage::default()).then_some(()));
    }
}
