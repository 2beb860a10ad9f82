//! Holm is upgraded while it runs.

use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::guest::{exec, idle, launch_idle, pid, status};
use crate::process::{Stopped, is_stopped};
use crate::sandbox::Sandbox;
use crate::source::program;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(during_a_start).bases(&["busybox"]),
    test!(an_old_init_goes_with_its_last_guest).bases(&["busybox"]),
];

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

/// What guests run of an older version is kept, and nothing else.
fn an_old_init_goes_with_its_last_guest(sandbox: &mut Sandbox) {
    let inits = |sandbox: &Sandbox| {
        let entries = std::fs::read_dir(sandbox.root()).expect("the root");
        let names = entries.flatten().map(|entry| entry.file_name().into_string().expect("text"));
        let mut inits: Vec<String> = names.filter(|name| name.starts_with("init-")).collect();
        inits.sort();
        inits
    };
    launch_idle(sandbox, "box", &[]);
    let current = inits(sandbox).pop().expect("the guest's init");
    let root = sandbox.root().to_owned();
    // As if other versions of Holm had written them: the guest runs the first, none the second.
    std::fs::rename(root.join(&current), root.join("init-0")).expect("ours");
    std::fs::write(root.join("init-1"), "old").expect("ours");
    launch_idle(sandbox, "new", &[]);
    assert_eq!(inits(sandbox), ["init-0", &current]);
    sandbox.holm(&["rm", "--force", "box", "new"]).ok();
    std::fs::remove_file(root.join(&current)).expect("ours");
    launch_idle(sandbox, "new", &[]);
    assert_eq!(inits(sandbox), [&*current]);
    sandbox.holm(&["rm", "--force", "new"]).ok();
}
