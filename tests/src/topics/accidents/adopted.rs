//! Guests whose monitor was killed and that have another now.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{exec, pid, status, system, would_be_systemd};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use crate::topics::security::probe_folder;

pub const TESTS: &[Test] = &[
    test!(a_console_behind_a_filesystem_that_never_answers),
    test!(restart_always).bases(&["busybox"]),
    test!(restart_on_failure).bases(&["busybox"]),
    test!(restart_no).bases(&["busybox"]),
    test!(readiness_that_nobody_heard),
];

/// Kills the monitor with -9 and lets a command put another in its place.
fn adopt(sandbox: &Sandbox) {
    let monitor = pid(&status(sandbox, "box"), "monitor");
    kill_process(Pid::from_raw(monitor).expect("a process id"), Signal::KILL).expect("it runs");
    sandbox.wait_for("another monitor", || {
        sandbox.holm(&["start", "box"]).refused(&["already running"]);
        let state = status(sandbox, "box");
        (state["unwatched"] == false && pid(&state, "monitor") != monitor).then_some(())
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
    let source = system(sandbox, |dir| would_be_systemd(dir, init));
    sandbox.holm(&["base", "import", "own", &source]).ok();
    let devices = "devices=[\"/dev/fuse\"]";
    let probe = format!("{}:/probe:ro", probe_folder(sandbox).display());
    let words =
        ["--base", "own", "--init", "system", "--net", "none", "--set", devices, "-v", &probe];
    sandbox.holm(&[&["launch", "box"][..], &words].concat()).ok();
}

/// FUSE lets no process of the host wait for a guest's server, but an overlay asks it with its mounter's rights.
fn a_console_behind_a_filesystem_that_never_answers(sandbox: &mut Sandbox) {
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
    let words = ["--base", "busybox", "--net", "none", "--set", &policy, "--", "sh", "-c", &script];
    sandbox.holm(&[&["launch", "box"][..], &words].concat()).ok();
}

/// Lets init end, and says how that was seen: with what this kernel tells those who are not its parent.
#[track_caller]
fn end(sandbox: &Sandbox, code: u8) -> String {
    sandbox.holm(&["exec", "box", "touch", "/end"]).ok();
    let ended = sandbox.wait_for("its end is noted", || {
        Some(status(sandbox, "box")["last"]["ended"].as_str()?.to_owned())
    });
    let seen = [format!("exited {code} adopted"), "unknown adopted".to_owned()];
    assert!(seen.contains(&ended), "{ended}");
    ended
}

#[track_caller]
fn is_started_again(sandbox: &Sandbox, first: i32) {
    sandbox.wait_for("it is started again, with a monitor that is init's parent", || {
        let state = status(sandbox, "box");
        let now =
            state["state"]["pid"].as_i64().filter(|&pid| pid != 0 && pid != i64::from(first))?;
        let own = state["state"]["adopted"].is_null() && state["unwatched"] == false;
        // Before it is ready it may still be launched.
        (own && state["status"] == "ready").then_some(now)
    });
    assert_eq!(exec(sandbox, "box", "echo alive").ok().stdout, "alive\n");
}

fn restart_always(sandbox: &mut Sandbox) {
    launch_ending(sandbox, "always", 0);
    let first = pid(&status(sandbox, "box"), "pid");
    adopt(sandbox);
    let ended = end(sandbox, 0);
    is_started_again(sandbox, first);
    let told = sandbox.holm(&["status", "box"]).ok();
    let words = if ended.starts_with("unknown") { "status unknown" } else { "another cannot tell" };
    assert!(told.stdout.contains(words), "{told}");
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

fn restart_on_failure(sandbox: &mut Sandbox) {
    launch_ending(sandbox, "on-failure", 7);
    let first = pid(&status(sandbox, "box"), "pid");
    adopt(sandbox);
    end(sandbox, 7);
    is_started_again(sandbox, first);
    sandbox.holm(&["rm", "--force", "box"]).ok();
    // An end that is known to be none stays one; an unknown one counts as a failure.
    launch_ending(sandbox, "on-failure", 0);
    let first = pid(&status(sandbox, "box"), "pid");
    adopt(sandbox);
    if end(sandbox, 0).starts_with("unknown") {
        is_started_again(sandbox, first);
    } else {
        assert!(status(sandbox, "box")["last"]["pending"].is_null());
        assert_eq!(status(sandbox, "box")["status"], "stopped");
    }
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

fn restart_no(sandbox: &mut Sandbox) {
    launch_ending(sandbox, "no", 7);
    adopt(sandbox);
    end(sandbox, 7);
    let state = status(sandbox, "box");
    assert!(state["status"] == "stopped" && state["last"]["pending"].is_null(), "{state}");
    sandbox.holm(&["rm", "box"]).ok();
}

/// A guest that never gets ready: `--wait` ends when the monitor does, and `status` says what is not known.
fn readiness_that_nobody_heard(sandbox: &mut Sandbox) {
    launch_system(sandbox, "#!/bin/sh\nexec sleep 100000\n");
    sandbox.holm(&["stop", "--timeout=0s", "box"]).ok();
    let mut command = sandbox.command();
    command.args(["start", "--wait=1h", "box"]).stdin(Stdio::null()).stdout(Stdio::null());
    let mut waiting = Background(command.stderr(Stdio::piped()).spawn().expect("holm runs"));
    sandbox.wait_for("init runs", || exec(sandbox, "box", "true").status.success().then_some(()));
    let unknown = |sandbox: &Sandbox| status(sandbox, "box")["unheard"].as_bool().expect("a word");
    assert!(!unknown(sandbox), "its monitor hears it");
    adopt(sandbox);
    let ended = sandbox.wait_for("--wait ends", || waiting.0.try_wait().expect("our child"));
    let mut told = String::new();
    let stderr = waiting.0.stderr.take().expect("piped");
    std::io::Read::read_to_string(&mut { stderr }, &mut told).expect("text");
    assert_eq!(ended.code(), Some(125), "{told}");
    for word in ["not known whether guest box is ready", "keeps running", "holm restart box"] {
        assert!(told.contains(word), "{told}");
    }
    assert!(unknown(sandbox));
    let told = sandbox.holm(&["status", "box"]).ok();
    assert!(told.stdout.contains("not known: its monitor died"), "{told}");
    sandbox.holm(&["rm", "--force", "box"]).ok();
}
