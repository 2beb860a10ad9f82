//! Inits that cannot be executed, die at once, or never become ready.

use crate::guest::{ended, exec, idle, status};
use crate::process::{Stopped, kill_hard};
use crate::sandbox::Sandbox;
use crate::source::{fake_systemd, program, system};
use crate::test::{Test, test};
use crate::topics::accidents::killed::EXECUTED;
use crate::traces::{changes_nothing, traces};

pub const TESTS: &[Test] = &[
    test!(an_init_that_cannot_run),
    test!(an_init_of_another_machine),
    test!(an_init_that_the_guest_has_broken),
    test!(an_init_that_dies_at_once),
    test!(an_init_that_dies_before_its_monitor_watches),
    test!(an_init_that_dies_at_once_is_started_again),
    test!(a_first_process_that_is_killed_before_init_runs).bases(&["busybox"]),
    test!(an_init_that_never_gets_ready),
];

/// A program of the host with the machine number of another architecture (`EM_AARCH64`).
pub fn foreign() -> Vec<u8> {
    let mut bytes = std::fs::read("/bin/busybox").expect("the host has busybox");
    bytes[18] = 0xb7;
    bytes
}

fn import(sandbox: &Sandbox, init: Option<&[u8]>) {
    let source = system(sandbox, |dir| {
        if let Some(bytes) = init {
            program(&dir.join("sbin/init"), bytes);
        }
    });
    sandbox.holm(&["base", "import", "odd", &source]).ok();
    sandbox.holm(&["create", "box", "--base", "odd", "--init", "system"]).ok();
}

/// The same with an init that Holm expects to report readiness.
fn import_fake_systemd(sandbox: &Sandbox, script: &str) {
    let source = system(sandbox, |dir| fake_systemd(dir, script));
    sandbox.holm(&["base", "import", "odd", &source]).ok();
    sandbox.holm(&["create", "box", "--base", "odd", "--init", "system"]).ok();
}

/// `start` fails with `message` and leaves nothing, twice; then the guest can be removed.
#[track_caller]
fn is_refused(sandbox: &mut Sandbox, message: &[&str]) {
    changes_nothing(sandbox, |sandbox| {
        for _ in 0..2 {
            sandbox.holm(&["start", "box"]).refused(message);
            assert_eq!(status(sandbox, "box")["state"], "stopped");
        }
    });
    sandbox.holm(&["rm", "box"]).ok();
    sandbox.holm(&["base", "rm", "odd"]).ok();
}

fn an_init_that_cannot_run(sandbox: &mut Sandbox) {
    import(sandbox, None);
    is_refused(sandbox, &["guest box", "base odd", "no init", "--init minimal"]);
    import(sandbox, Some(b"\x01\x02 garbage"));
    is_refused(sandbox, &["guest box", "/sbin/init", "not a program"]);
    import(sandbox, Some(b"#!/no/such/shell\n"));
    is_refused(sandbox, &["guest box", "/sbin/init"]);
}

fn an_init_of_another_machine(sandbox: &mut Sandbox) {
    import(sandbox, Some(&foreign()));
    is_refused(sandbox, &["guest box", "/sbin/init", "architecture"]);
}

fn an_init_that_the_guest_has_broken(sandbox: &mut Sandbox) {
    import(sandbox, Some(b"#!/bin/sh\nexec sleep 100000\n"));
    for (script, message) in [
        ("rm /sbin/init", ["guest box", "/sbin/init", "is not in the guest"]),
        ("chmod 0 /sbin/init", ["guest box", "/sbin/init", "not executable"]),
        ("ln -sf init /sbin/init", ["guest box", "/sbin/init", "ymbolic link"]),
        ("mkdir /sbin/init", ["guest box", "/sbin/init", "not executable"]),
    ] {
        sandbox.holm(&["start", "box"]).ok();
        // The shell opens the script only after it has been executed for it.
        sandbox.wait_for("the script has been read", || {
            let command_line = exec(sandbox, "box", "/bin/busybox cat /proc/1/cmdline").stdout;
            command_line.starts_with("sleep").then_some(())
        });
        exec(sandbox, "box", &format!("B=/bin/busybox; $B {}", first(script))).ok();
        sandbox.holm(&["kill", "box"]).ok();
        changes_nothing(sandbox, |sandbox| {
            sandbox.holm(&["start", "box"]).refused(&message);
        });
        sandbox.holm(&["rm", "box"]).ok();
        sandbox.holm(&["create", "box", "--base", "odd", "--init", "system"]).ok();
    }
    sandbox.holm(&["rm", "box"]).ok();
}

/// The file has to be removed before a directory can take its place.
fn first(script: &str) -> String {
    if script.starts_with("mkdir") {
        format!("rm /sbin/init && /bin/busybox {script}")
    } else {
        script.to_owned()
    }
}

fn an_init_that_dies_at_once(sandbox: &mut Sandbox) {
    import_fake_systemd(sandbox, "#!/bin/sh\necho last words\nexit 3\n");
    changes_nothing(sandbox, |sandbox| {
        sandbox.holm(&["start", "box"]).ok();
        sandbox.wait_for("its end is seen", || {
            (status(sandbox, "box")["state"] == "stopped").then_some(())
        });
        let last = status(sandbox, "box");
        assert_eq!(ended(&last), "exited 3", "{last}");
        let logs = sandbox.holm(&["logs", "box"]).ok();
        assert!(logs.stdout.contains("last words"), "{logs}");
        let waited = sandbox.holm(&["start", "box", "--wait=10m"]);
        waited.refused(&["guest box", "ended before it was ready", "holm logs box"]);
        let shown = sandbox.holm(&["status", "box"]).ok();
        assert!(shown.stdout.contains("exited with 3"), "{shown}");
    });
    sandbox.holm(&["rm", "box"]).ok();
}

/// Its interface and its namespaces are gone before the launcher becomes the monitor.
fn an_init_that_dies_before_its_monitor_watches(sandbox: &mut Sandbox) {
    import_fake_systemd(sandbox, "#!/bin/sh\necho last words\nexit 3\n");
    changes_nothing(sandbox, |sandbox| {
        let mut start = Stopped::new(sandbox, &["start", "box"], EXECUTED);
        let link = format!("link h{}-", sandbox.instance().expect("the root is in use"));
        sandbox.wait_for("its interface is gone", || {
            let there = sandbox.host_resources(sandbox.instance());
            (!there.iter().any(|item| item.starts_with(&link))).then_some(())
        });
        let (started, said) = start.resume(sandbox);
        assert!(started.success(), "{said}");
        sandbox.wait_for("its end is noted", || {
            (ended(&status(sandbox, "box")) == "exited 3").then_some(())
        });
        let logs = sandbox.holm(&["logs", "box"]).ok();
        assert!(logs.stdout.contains("last words"), "{logs}");
    });
    sandbox.holm(&["rm", "box"]).ok();
}

fn an_init_that_dies_at_once_is_started_again(sandbox: &mut Sandbox) {
    import_fake_systemd(sandbox, "#!/bin/sh\nexit 3\n");
    changes_nothing(sandbox, |sandbox| {
        sandbox.holm(&["set", "box", "restart=always"]).ok();
        sandbox.holm(&["start", "box"]).ok();
        sandbox.wait_for("it is started again, and again", || {
            (status(sandbox, "box")["last_run"]["restarts"].as_u64()? >= 2).then_some(())
        });
        // Whether it runs at this moment or not: `kill` cancels the pending restart.
        sandbox.holm(&["kill", "box"]);
        sandbox.wait_for("it stays stopped", || {
            (status(sandbox, "box")["state"] == "stopped").then_some(())
        });
    });
    sandbox.holm(&["rm", "box"]).ok();
}

/// The error is about init, not about what the launcher failed at because of that.
fn a_first_process_that_is_killed_before_init_runs(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "box");
    changes_nothing(sandbox, |sandbox| {
        for step in ["id-maps", "files", "wait-for-init", "pivot", "socket"] {
            let mut start = Stopped::new(sandbox, &["start", "box"], step);
            kill_hard(sandbox, start.child());
            let (ended, said) = start.resume(sandbox);
            assert_eq!(ended.code(), Some(125), "{step}: {said}");
            assert!(said.contains("was killed before init ran"), "{step}: {said}");
        }
    });
    sandbox.holm(&["rm", "box"]).ok();
    // With its interface, which the monitor listens on.
    let create = ["create", "box", "--base", "busybox", "--net", "private", "--", "sleep", "1000"];
    sandbox.holm(&create).ok();
    changes_nothing(sandbox, |sandbox| {
        let mut start = Stopped::new(sandbox, &["start", "box"], "return");
        let has_interface = || traces(sandbox).iter().any(|item| item.starts_with("link "));
        assert!(has_interface());
        kill_hard(sandbox, start.child());
        sandbox.wait_for("its interface is gone", || (!has_interface()).then_some(()));
        let (ended, said) = start.resume(sandbox);
        assert_eq!(ended.code(), Some(125), "{said}");
        assert!(said.contains("was killed before init ran"), "{said}");
    });
    sandbox.holm(&["rm", "box"]).ok();
}

fn an_init_that_never_gets_ready(sandbox: &mut Sandbox) {
    import_fake_systemd(sandbox, "#!/bin/sh\nexec sleep 100000\n");
    changes_nothing(sandbox, |sandbox| {
        let message = ["guest box", "was not ready", "within 1s", "keeps running", "holm logs box"];
        sandbox.holm(&["start", "box", "--wait=1s"]).refused(&message);
        assert_eq!(status(sandbox, "box")["state"], "running");
        exec(sandbox, "box", "exit 0").ok();
        sandbox.holm(&["kill", "box"]).ok();
    });
    sandbox.holm(&["rm", "box"]).ok();
}
