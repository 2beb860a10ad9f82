//! Minimal init.

use super::broken::foreign;
use crate::guest::{exec, pid, status};
use crate::sandbox::Sandbox;
use crate::source::{program, system};
use crate::test::{Test, test};
use crate::topics::monitor::{end, launch, logs};
use crate::traces::changes_nothing;

pub const TESTS: &[Test] = &[
    test!(reboots_and_powers_off).bases(&["busybox"]),
    test!(restarts_services_and_stops_them).bases(&["busybox"]),
    test!(a_hang_up_ends_no_services).bases(&["busybox"]),
    test!(says_why_a_command_cannot_run).bases(&["busybox"]),
    test!(a_command_that_cannot_run),
];

fn reboots_and_powers_off(sandbox: &mut Sandbox) {
    launch(sandbox, &[], "sleep 1000");
    let first = pid(&status(sandbox, "g"), "init_pid");
    sandbox.holm(&["exec", "g", "--", "reboot"]);
    sandbox.wait_for("the guest is up again", || {
        let status = status(sandbox, "g");
        (status["init_pid"].as_i64().is_some_and(|pid| pid != 0 && pid != i64::from(first))
            && status["state"] == "ready")
            .then_some(())
    });
    sandbox.holm(&["exec", "g", "--", "poweroff"]);
    assert!(end(sandbox).is_poweroff());
}

fn restarts_services_and_stops_them(sandbox: &mut Sandbox) {
    let service = |name: &str, script: &str, restart: &str| {
        [
            format!("services.{name}.command=[\"sh\", \"-c\", \"{script}\"]"),
            format!("services.{name}.restart={restart}"),
        ]
    };
    let settings = [
        service("often", "echo often; sleep 0.1", "always"),
        service("once", "echo once", "no"),
        service("last", "trap 'echo stopping; exit' TERM; while :; do sleep 0.1; done", "no"),
    ]
    .concat();
    let mut args = vec!["launch", "g", "--base", "busybox", "--net", "none", "--init", "minimal"];
    for setting in &settings {
        args.extend(["--set", setting]);
    }
    sandbox.holm(&args).ok();
    sandbox
        .wait_for("three starts", || (logs(sandbox).matches("often").count() >= 3).then_some(()));
    assert_eq!(logs(sandbox).matches("once").count(), 1);
    let services = |sandbox: &Sandbox| status(sandbox, "g")["health"]["services"].clone();
    sandbox.wait_for("a report of all services", || {
        let text = services(sandbox);
        let text = text.as_str().unwrap_or_default();
        let starts =
            text.starts_with("services: ") && text.contains(", 1 ended; often exited with 0");
        (starts && text.contains(", started again ") && text.ends_with("; once exited with 0"))
            .then_some(())
    });
    sandbox.holm(&["stop", "g"]).ok();
    assert!(logs(sandbox).contains("stopping"));
    assert_eq!(end(sandbox).to_string(), "exited 0");
}

/// A hang-up asks daemons to read their settings again, and minimal init has none.
fn a_hang_up_ends_no_services(sandbox: &mut Sandbox) {
    let service = ["services.one.command=[\"sleep\", \"1000\"]", "services.one.restart=always"];
    let args = ["launch", "g", "--base", "busybox", "--net", "none", "--init", "minimal", "--wait"];
    sandbox.holm(&[&args[..], &["--set", service[0], "--set", service[1]]].concat()).ok();
    let first = pid(&status(sandbox, "g"), "init_pid");
    for signal in ["HUP", "USR1"] {
        sandbox.holm(&["kill", "--signal", signal, "g"]).ok();
    }
    exec(sandbox, "g", "kill -HUP 1").ok();
    // Init is told of the end of a child after the signals above, which have lower numbers: that it
    // starts the service again shows that it has answered them.
    let service = exec(sandbox, "g", "pidof sleep").ok().stdout;
    exec(sandbox, "g", "kill $(pidof sleep)").ok();
    sandbox.wait_for("the service runs again", || {
        let now = exec(sandbox, "g", "pidof sleep");
        (now.status.success() && now.stdout != service).then_some(())
    });
    let now = status(sandbox, "g");
    assert_eq!((pid(&now, "init_pid"), &now["state"]), (first, &"ready".into()), "{now}");
    sandbox.holm(&["kill", "--signal", "TERM", "g"]).ok();
    assert_eq!(end(sandbox).to_string(), "exited 0");
}

fn says_why_a_command_cannot_run(sandbox: &mut Sandbox) {
    for (program, status, message) in [
        ("/nowhere", 127, "holm-init: /nowhere: not found"),
        ("/etc/passwd", 126, "holm-init: /etc/passwd: not permitted to execute it"),
    ] {
        let outcome = sandbox.holm(&["run", "--base", "busybox", "--net", "none", "--", program]);
        assert_eq!(outcome.code(), status, "{outcome}");
        assert!(outcome.stderr.contains(message), "{outcome}");
    }
}

/// The exit status is that of a shell, and the message has the reason.
fn a_command_that_cannot_run(sandbox: &mut Sandbox) {
    let source = system(sandbox, |dir| {
        program(&dir.join("bin/foreign"), foreign());
        program(&dir.join("bin/garbage"), b"\x01\x02");
        std::fs::write(dir.join("bin/plain"), "echo").expect("a file");
    });
    sandbox.holm(&["base", "import", "odd", &source]).ok();
    changes_nothing(sandbox, |sandbox| {
        for (command, code, reason) in [
            ("/bin/foreign", 126, "not a program for this machine"),
            ("/bin/garbage", 126, "not a program for this machine"),
            ("/bin/plain", 126, "not permitted"),
            ("/bin/missing", 127, "not found"),
        ] {
            let run = ["run", "--base", "odd", "--net", "none", "--", command];
            let outcome = sandbox.holm(&run);
            assert_eq!(outcome.code(), code, "{outcome}");
            assert!(
                outcome.stderr.contains(command) && outcome.stderr.contains(reason),
                "{outcome}"
            );
        }
    });
}
