//! Holm is upgraded while it runs.

use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::guest::{exec, idle, pid, status};
use crate::process::{Stopped, is_stopped};
use crate::sandbox::Sandbox;
use crate::source::program;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[test!(during_a_start).bases(&["busybox"])];

/// The monitor executes the program that is at the path of the `holm` that started the guest by
/// then: the new one, which is told from the old by the calls that it writes down.
fn during_a_start(sandbox: &mut Sandbox) {
    let (path, new) = (sandbox.root().join("holm"), sandbox.root().join("holm.new"));
    std::fs::copy(&sandbox.options.faulty, &path).expect("a copy");
    let calls = sandbox.root().join("calls");
    let script = format!(
        "#!/bin/sh\necho \"$@\" >>'{}'\nexec '{}' \"$@\"\n",
        calls.display(),
        sandbox.options.faulty.display(),
    );
    program(&new, script);
    idle(sandbox, "create", "box");
    let mut command = Command::new(&path);
    command.args(["start", "box"]).env("HOLM_ROOT", sandbox.root()).env("HOLM_STOP_AT", "record");
    let mut start = Stopped::of(sandbox, &mut command, "record");
    std::fs::rename(&new, &path).expect("an upgrade");
    kill_process(start.at, Signal::CONT).expect("it is stopped");
    assert!(sandbox.wait_for("holm start ends", || start.try_wait()).success());

    let before = status(sandbox, "box");
    let (first, monitor) = (pid(&before, "init_pid"), pid(&before, "monitor_pid"));
    exec(sandbox, "box", "reboot");
    sandbox.wait_for("the guest is up again", || {
        // The monitor makes the next start, with the same step to stop at.
        if is_stopped(monitor.unsigned_abs()) {
            let _ = kill_process(Pid::from_raw(monitor).expect("a process id"), Signal::CONT);
        }
        let now = status(sandbox, "box");
        (now["state"] == "ready" && pid(&now, "init_pid") != first).then_some(())
    });
    let calls = std::fs::read_to_string(calls).expect("the new program was executed");
    assert!(calls.starts_with("monitor-ended"), "{calls}");
    sandbox.holm(&["rm", "--force", "box"]).ok();
}
