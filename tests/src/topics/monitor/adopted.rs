//! A guest whose monitor was killed runs on, and is adopted by another.

use super::{COUNT, launch, logs};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::guest::{exec, launch_idle, pid, remove, status};
use crate::process::{kill, kill_hard, kill_waiting, process_of};
use crate::sandbox::Sandbox;
use crate::source::{fake_systemd, system};
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(a_console_on_a_filesystem_that_hangs),
    test!(restart_always).bases(&["busybox"]),
    test!(restart_on_failure).bases(&["busybox"]),
    test!(restart_no).bases(&["busybox"]),
    test!(readiness_is_unknown_without_a_monitor),
    test!(a_killed_monitor_costs_no_line).bases(&["busybox"]),
    test!(an_adopted_guests_end_is_known).bases(&["busybox"]),
    test!(a_guest_outlives_its_monitor).bases(&["busybox"]),
    test!(a_new_monitor_is_reported_once).bases(&["busybox"]),
    test!(a_new_monitor_answers_requests_for_addresses).bases(&["busybox"]),
];

/// Kills the monitor, and lets a command start another.
fn adopt(sandbox: &Sandbox) {
    let monitor = pid(&status(sandbox, "box"), "monitor_pid");
    kill_process(Pid::from_raw(monitor).expect("a process id"), Signal::KILL).expect("it runs");
    sandbox.wait_for("another monitor", || {
        sandbox.holm(&["start", "box"]).refused(&["already running"]);
        let state = status(sandbox, "box");
        (state["health"]["monitor"] != "missing" && pid(&state, "monitor_pid") != monitor)
            .then_some(())
    });
}

/// Ends with the test.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A guest with an init of its own, which is a script that Holm takes for systemd.
fn launch_system(sandbox: &Sandbox, init: &str) {
    let source = system(sandbox, |dir| fake_systemd(dir, init));
    sandbox.holm(&["base", "import", "own", &source]).ok();
    let devices = "devices=[\"/dev/fuse\"]";
    let probe = format!("{}:/probe:ro", sandbox.probe_directory().display());
    let args =
        ["--base", "own", "--init", "system", "--net", "none", "--set", devices, "-v", &probe];
    sandbox.holm(&[&["launch", "box"][..], &args].concat()).ok();
}

/// FUSE keeps host processes away from a guest's server, but an overlay asks it with its mounter's
/// credentials.
fn a_console_on_a_filesystem_that_hangs(sandbox: &mut Sandbox) {
    launch_system(sandbox, "#!/bin/sh\nexec sleep 100000\n");
    let script = "exec 3<>/dev/fuse; mkdir -p /tmp/served /tmp/empty; \
        mount -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 none /tmp/served || exit; \
        /probe/holm-probe fuse <&3 & \
        mount -t overlay -o lowerdir=/tmp/served:/tmp/empty none /dev/pts && kill -STOP $! && \
        echo mounted; exec sleep 100000";
    let mut command = sandbox.command();
    command.args(["exec", "box", "sh", "-c", script]).stdin(Stdio::null());
    let mut server = Background(command.stdout(Stdio::piped()).spawn().expect("holm runs"));
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    assert_eq!(line, "mounted\n");
    adopt(sandbox);
    // The lock is free again, and what needs no console works.
    sandbox.holm(&["freeze", "box"]).ok();
    sandbox.holm(&["thaw", "box"]).ok();
    assert_eq!(exec(sandbox, "box", "echo alive").ok().stdout, "alive\n");
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

/// Launches a guest that ends with `code` once /end is there, in each of its runs.
fn launch_ending(sandbox: &Sandbox, policy: &str, code: u8) {
    let script = format!("while [ ! -e /end ]; do sleep 0.05; done; rm /end; exit {code}");
    let policy = format!("restart={policy}");
    let args = ["--base", "busybox", "--net", "none", "--set", &policy, "--", "sh", "-c", &script];
    sandbox.holm(&[&["launch", "box"][..], &args].concat()).ok();
}

/// Lets init end; returns the recorded end: the kernel may not tell the exit status to others than
/// the parent.
#[track_caller]
fn end(sandbox: &Sandbox, code: u8) -> String {
    sandbox.holm(&["exec", "box", "touch", "/end"]).ok();
    let ended = sandbox.wait_for("its end is noted", || {
        let status = status(sandbox, "box");
        status["last_run"].is_object().then(|| crate::guest::ended(&status))
    });
    // A reboot and a poweroff look like an exit status of 0 to a monitor that is not the parent.
    let seen = if code == 0 { "clean".to_owned() } else { format!("exited {code}") };
    assert!(ended == seen || ended == "unknown", "{ended}");
    ended
}

#[track_caller]
fn is_started_again(sandbox: &Sandbox, first: i32) {
    sandbox.wait_for("it is started again, with a monitor that is init's parent", || {
        let state = status(sandbox, "box");
        let now = state["init_pid"].as_i64().filter(|&pid| pid != 0 && pid != i64::from(first))?;
        let own =
            state["health"]["replaced_at"].is_null() && state["health"]["monitor"] != "missing";
        // It may still be starting until it is ready.
        (own && state["state"] == "ready").then_some(now)
    });
    assert_eq!(exec(sandbox, "box", "echo alive").ok().stdout, "alive\n");
}

/// The end is recorded before everything of the run is cleaned up.
#[track_caller]
fn stays_stopped(sandbox: &Sandbox) {
    let state = sandbox.wait_for("it is stopped", || {
        Some(status(sandbox, "box")).filter(|state| state["state"] == "stopped")
    });
    assert!(state["pending_restart"].is_null(), "{state}");
}

fn restart_always(sandbox: &mut Sandbox) {
    launch_ending(sandbox, "always", 0);
    let first = pid(&status(sandbox, "box"), "init_pid");
    adopt(sandbox);
    let ended = end(sandbox, 0);
    is_started_again(sandbox, first);
    let printed = sandbox.holm(&["status", "box"]).ok();
    let expected =
        if ended.starts_with("unknown") { "status unknown" } else { "another cannot tell" };
    assert!(printed.stdout.contains(expected), "{printed}");
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

fn restart_on_failure(sandbox: &mut Sandbox) {
    launch_ending(sandbox, "on-failure", 7);
    let first = pid(&status(sandbox, "box"), "init_pid");
    adopt(sandbox);
    end(sandbox, 7);
    is_started_again(sandbox, first);
    sandbox.holm(&["rm", "--force", "box"]).ok();
    // A known success is none; an unknown end counts as a failure.
    launch_ending(sandbox, "on-failure", 0);
    let first = pid(&status(sandbox, "box"), "init_pid");
    adopt(sandbox);
    if end(sandbox, 0).starts_with("unknown") {
        is_started_again(sandbox, first);
    } else {
        stays_stopped(sandbox);
    }
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

fn restart_no(sandbox: &mut Sandbox) {
    launch_ending(sandbox, "no", 7);
    adopt(sandbox);
    end(sandbox, 7);
    stays_stopped(sandbox);
    sandbox.holm(&["rm", "box"]).ok();
}

/// A guest that never becomes ready: `--wait` ends with the monitor, and `status` says that
/// readiness is unknown.
fn readiness_is_unknown_without_a_monitor(sandbox: &mut Sandbox) {
    launch_system(sandbox, "#!/bin/sh\nexec sleep 100000\n");
    sandbox.holm(&["stop", "--timeout=0s", "box"]).ok();
    let mut command = sandbox.command();
    command.args(["start", "--wait=1h", "box"]).stdin(Stdio::null()).stdout(Stdio::null());
    let mut waiting = Background(command.stderr(Stdio::piped()).spawn().expect("holm runs"));
    sandbox.wait_for("init runs", || exec(sandbox, "box", "true").status.success().then_some(()));
    let unknown = |sandbox: &Sandbox| status(sandbox, "box")["health"]["readiness"] == "unknown";
    assert!(!unknown(sandbox), "its monitor receives it");
    adopt(sandbox);
    let ended = sandbox.wait_for("--wait ends", || waiting.0.try_wait().expect("our child"));
    let mut printed = String::new();
    let stderr = waiting.0.stderr.take().expect("piped");
    std::io::Read::read_to_string(&mut { stderr }, &mut printed).expect("text");
    assert_eq!(ended.code(), Some(125), "{printed}");
    for part in ["not known whether guest box is ready", "keeps running", "holm restart box"] {
        assert!(printed.contains(part), "{printed}");
    }
    assert!(unknown(sandbox));
    let printed = sandbox.holm(&["status", "box"]).ok();
    assert!(printed.stdout.contains("not known: its monitor died"), "{printed}");
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

/// What the guest writes meanwhile is kept by its terminal.
fn a_killed_monitor_costs_no_line(sandbox: &mut Sandbox) {
    launch(sandbox, &[], COUNT);
    let init = pid(&status(sandbox, "g"), "init_pid");
    for _ in 0..3 {
        let before = logs(sandbox).lines().count();
        let monitor = process_of(&status(sandbox, "g"), "monitor_pid");
        kill_waiting(sandbox, monitor);
        // Without a reader the guest's terminal fills.
        std::thread::sleep(Duration::from_millis(200));
        let now = sandbox.wait_for("a new monitor", || {
            sandbox.holm(&["start", "g"]);
            let status = status(sandbox, "g");
            (process_of(&status, "monitor_pid") != monitor).then_some(status)
        });
        assert_eq!(pid(&now, "init_pid"), init, "the same init");
        assert!(now["health"]["replaced_at"].is_string(), "{now}");
        sandbox
            .wait_for("more lines", || (logs(sandbox).lines().count() > before + 5).then_some(()));
    }
    for (at, line) in logs(sandbox).lines().enumerate() {
        assert_eq!(line, format!("line {at}"));
    }
    sandbox.holm(&["stop", "g"]).ok();
}

fn an_adopted_guests_end_is_known(sandbox: &mut Sandbox) {
    launch(sandbox, &[], "while [ ! -e /end ]; do sleep 0.05; done; exit 7");
    kill(process_of(&status(sandbox, "g"), "monitor_pid"), Signal::KILL);
    sandbox.holm(&["start", "g"]);
    sandbox.holm(&["exec", "g", "--", "touch", "/end"]).ok();
    let ended = super::end(sandbox);
    // The kernel tells others than the parent since Linux 6.15.
    let known = ["exited 7 adopted", "unknown adopted"].contains(&ended.to_string().as_str());
    assert!(known, "{ended}");
}

fn a_guest_outlives_its_monitor(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let before = status(sandbox, "box");
    kill_hard(sandbox, process_of(&before, "monitor_pid"));
    let alone = status(sandbox, "box");
    assert_eq!(pid(&alone, "init_pid"), pid(&before, "init_pid"), "init lives on");
    assert_eq!(exec(sandbox, "box", "echo alive").ok().stdout, "alive\n");
    remove(sandbox, "box");
}

/// Whichever command starts the new monitor says so on standard error; --json is not changed.
fn a_new_monitor_is_reported_once(sandbox: &mut Sandbox) {
    let sentence = |name: &str| {
        format!("holm: the monitor of guest {name} was killed; a new one was started\n")
    };
    let names = ["box", "other"];
    for name in names {
        launch_idle(sandbox, name, &[]);
    }
    let commands: [&[&str]; 5] = [
        &["ls", "--json"],
        &["status", "box", "--json"],
        &["set", "box", "restart=no", "--json"],
        &["start", "box", "--json"],
        &["freeze", "box", "--json"],
    ];
    for args in commands {
        kill_hard(sandbox, process_of(&status(sandbox, "box"), "monitor_pid"));
        let printed = sandbox.holm(args);
        assert_eq!(printed.stderr, sentence("box"), "{printed}");
        assert!(!printed.json().is_null(), "{printed}");
        let again = sandbox.holm(&["status", "box"]).ok();
        assert_eq!(again.stderr, "", "it is said once\n{again}");
        assert!(again.stdout.contains("the one before was killed"), "{again}");
    }
    for name in names {
        kill_hard(sandbox, process_of(&status(sandbox, name), "monitor_pid"));
    }
    let printed = sandbox.holm(&["thaw", "--all"]).ok();
    let mut lines: Vec<&str> = printed.stderr.split_inclusive('\n').collect();
    lines.sort_unstable();
    assert_eq!(lines, names.map(sentence), "{printed}");
    assert_eq!(printed.stdout, "", "{printed}");
    for name in names {
        remove(sandbox, name);
    }
}

fn a_new_monitor_answers_requests_for_addresses(sandbox: &mut Sandbox) {
    let args = ["launch", "box", "--base", "busybox", "--", "sleep", "100000"];
    sandbox.holm(&args).ok();
    kill_hard(sandbox, process_of(&status(sandbox, "box"), "monitor_pid"));
    let again = sandbox.holm(&["status", "box", "--json"]).ok();
    assert!(again.stderr.contains("a new one was started"), "{again}");
    let address = again.json()["addresses"][0].as_str().expect("an address").to_owned();
    let script = "printf '#!/bin/sh\\necho \"$1 $ip\"\\n' > /lease; chmod 755 /lease; \
        busybox udhcpc -i eth0 -n -q -f -s /lease";
    let lease = exec(sandbox, "box", script).ok();
    assert!(lease.stdout.contains(&format!("bound {address}")), "{lease}");
    remove(sandbox, "box");
}
