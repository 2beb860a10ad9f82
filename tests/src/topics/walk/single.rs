//! Faults at single calls, which the samples of a walk rarely hit.

use super::strace::{Call, Fault, Traced, run_with};
use crate::guest::{idle, status};
use crate::process::{has_ended, process};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] =
    &[test!(a_monitor_that_cannot_watch_init_is_replaced).bases(&["busybox"])];

/// It would wait for ever.
fn a_monitor_that_cannot_watch_init_is_replaced(sandbox: &mut Sandbox) {
    idle(sandbox, "launch", "box");
    sandbox.holm(&["kill", "box"]).ok();
    let (traced, fault) = (Traced::Launcher, Fault::Error("ENOSPC"));
    let (started, hit) =
        run_with(sandbox, traced, &Call::new("epoll_ctl", 1), fault, &["start", "box"]);
    started.ok();
    assert!(hit);
    sandbox.wait_for("another monitor", || {
        sandbox.holm(&["ls"]).ok();
        let status = status(sandbox, "box");
        status["monitor_pid"].is_i64().then_some(())
    });
    let monitor = process(sandbox, "monitor_pid");
    sandbox.holm(&["kill", "box"]).ok();
    sandbox.wait_for("it ends with its guest", || has_ended(monitor).then_some(()));
    sandbox.holm(&["rm", "box"]).ok();
}
