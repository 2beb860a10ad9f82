//! `holm start` and `holm run` are killed at each step: the next command reconciles.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::guest::{exec, idle, pid, status};
use crate::process::{Stopped, has_ended};
use crate::sandbox::{Sandbox, skip};
use crate::test::{Test, test};
use crate::traces::{settled, traces, wait_until_as_before};

pub const TESTS: &[Test] = &[
    test!(start_killed_at_each_step).bases(&["busybox"]),
    test!(future_monitor_killed_at_each_step).bases(&["busybox"]),
    test!(a_killed_start_continues_in_the_monitor).bases(&["busybox"]),
    test!(run_killed_at_each_step).bases(&["busybox"]),
    test!(create_killed).bases(&["busybox"]),
    test!(a_guest_dies_with_its_run).bases(&["busybox"]),
    test!(a_release_build_injects_no_faults).bases(&["busybox"]),
    test!(a_stop_that_was_killed_lapses).bases(&["busybox"]),
    test!(ids_of_another_guest_are_not_released).bases(&["busybox"]),
    test!(a_half_written_file_is_removed).bases(&["busybox"]),
];

/// The steps that `holm start` itself takes.
pub const PREPARING: &[&str] = &["base", "net-plan", "cgroup", "record", "net-admit"];
/// Those of the process that becomes the monitor.
pub const LAUNCHING: &[&str] = &[
    "mount-namespace",
    "clone",
    "id-maps",
    "net-attach",
    "root",
    "dev",
    "files",
    "wait-for-init",
    "net-inside",
    "proc",
    "sys",
    "binds",
    "pivot",
    "return",
    "socket",
    EXECUTED,
];
/// The step from which on init runs.
pub const EXECUTED: &str = "exec";

pub fn create(sandbox: &Sandbox) {
    sandbox.holm(&["create", "box", "--base", "busybox", "--", "sleep", "100000"]).ok();
    // The root now has what it keeps after its first guest.
    sandbox.holm(&["start", "box"]).ok();
    sandbox.holm(&["stop", "box"]).ok();
}

/// After `ls`, everything is as `before`, and the guest starts, answers and stops.
#[track_caller]
pub fn is_repaired(sandbox: &mut Sandbox, before: &[String], what: &str) {
    sandbox.wait_for(what, || {
        let listed = sandbox.holm(&["ls"]).ok();
        assert!(listed.stdout.contains("box"), "{what}\n{listed}");
        (status(sandbox, "box")["state"] == "stopped").then_some(())
    });
    // The killed process may have held the guest's lock at the previous look.
    wait_until_as_before(sandbox, before, what, || {
        sandbox.holm(&["ls"]).ok();
    });
    works(sandbox);
}

/// The guest starts, answers and stops.
#[track_caller]
fn works(sandbox: &Sandbox) {
    sandbox.holm(&["start", "box"]).ok();
    assert_eq!(exec(sandbox, "box", "echo alive").ok().stdout, "alive\n");
    sandbox.holm(&["stop", "box"]).ok();
}

/// Both processes are killed: `holm start`, and the one that was to become the monitor.
fn start_killed_at_each_step(sandbox: &mut Sandbox) {
    create(sandbox);
    let before = settled(sandbox);
    for step in [PREPARING, LAUNCHING].concat() {
        let mut stopped = Stopped::new(sandbox, &["start", "box"], step);
        stopped.kill_command();
        let _ = kill_process(stopped.at, Signal::KILL); // the same process before the fork
        if step == EXECUTED {
            // The guest lives, and gets a monitor.
            is_adopted(sandbox, step);
        }
        is_repaired(sandbox, &before, &format!("start killed after {step}"));
    }
    sandbox.holm(&["rm", "box"]).ok();
}

/// A guest that ran when its future monitor was killed gets another with the next command.
#[track_caller]
pub fn is_adopted(sandbox: &Sandbox, step: &str) {
    let first = status(sandbox, "box");
    assert_ne!(first["state"], "stopped", "{step}: {first}");
    sandbox.wait_for("a monitor of its own", || {
        let state = status(sandbox, "box");
        (state["health"]["monitor"] != "missing" && state["health"]["replaced_at"].is_string())
            .then_some(())
    });
    assert_eq!(exec(sandbox, "box", "echo alive").ok().stdout, "alive\n");
    sandbox.holm(&["stop", "box"]).ok();
}

/// Only the child is killed: `holm start` says so, and has removed everything.
fn future_monitor_killed_at_each_step(sandbox: &mut Sandbox) {
    create(sandbox);
    let before = settled(sandbox);
    for step in LAUNCHING {
        let mut stopped = Stopped::new(sandbox, &["start", "box"], step);
        stopped.kill_it();
        let ended = sandbox.wait_for("holm start ends", || stopped.try_wait());
        assert_eq!(ended.code(), Some(125), "start must not claim success: {step}");
        is_repaired(sandbox, &before, &format!("the monitor-to-be killed after {step}"));
    }
    sandbox.holm(&["rm", "box"]).ok();
}

/// Only `holm start` is killed: its child goes on, and the guest runs with a monitor.
fn a_killed_start_continues_in_the_monitor(sandbox: &mut Sandbox) {
    create(sandbox);
    let before = settled(sandbox);
    for step in LAUNCHING {
        let mut stopped = Stopped::new(sandbox, &["start", "box"], step);
        stopped.kill_command();
        kill_process(stopped.at, Signal::CONT).expect("it is stopped");
        // `start` waits for the lock, which the child has until it is the monitor.
        sandbox.holm(&["start", "box"]).refused(&["guest box", "already running"]);
        let state = status(sandbox, "box");
        assert_eq!(pid(&state, "monitor_pid"), stopped.at.as_raw_nonzero().get(), "{step}");
        assert_ne!(state["health"]["monitor"], "missing", "{step}: {state}");
        assert_eq!(exec(sandbox, "box", "echo alive").ok().stdout, "alive\n");
        sandbox.holm(&["stop", "box"]).ok();
        is_repaired(sandbox, &before, &format!("start went on after {step}"));
    }
    sandbox.holm(&["rm", "box"]).ok();
}

fn run_killed_at_each_step(sandbox: &mut Sandbox) {
    sandbox.holm(&["run", "--base", "busybox", "--", "true"]).ok();
    let before = settled(sandbox);
    let before_launch = ["ids"].iter().chain(PREPARING);
    let after = ["command", "cleanup-cgroup-inner", "clean-up", "release"];
    let launching = LAUNCHING.iter().filter(|step| **step != "socket");
    for step in before_launch.chain(launching).chain(&after) {
        let name = format!("--name=at-{step}");
        // With a limit it has cgroups in v1 hierarchies too, where there are some.
        let run = ["run", &name, "--base", "busybox", "--memory", "64M", "--", "sleep", "1"];
        let mut stopped = Stopped::new(sandbox, &run, step);
        stopped.kill_command();
    }
    // An id that nobody owns may be in the making for ten seconds.
    wait_until_as_before(sandbox, &before, "what the killed commands left", || {
        sandbox.holm(&["ls"]).ok();
    });
    sandbox.holm(&["run", "--base", "busybox", "--", "true"]).ok();
}

/// The kernel ends the guest of a killed `holm run`: no other command does, for none is called.
fn a_guest_dies_with_its_run(sandbox: &mut Sandbox) {
    for output in [Stdio::null, Stdio::inherit] {
        let mut command = sandbox.command();
        command.args([
            "run",
            "--name=box",
            "--base",
            "busybox",
            "--net",
            "none",
            "--",
            "sleep",
            "1000",
        ]);
        let mut run = command.stdin(Stdio::null()).stdout(output()).spawn().expect("holm runs");
        let init = sandbox.wait_for("the guest runs its command", || {
            let listed = sandbox.holm(&["ls", "--json"]).ok().json();
            let init = listed[0]["init_pid"].as_i64().and_then(|pid| i32::try_from(pid).ok())?;
            let children = format!("/proc/{init}/task/{init}/children");
            let started = std::fs::read_to_string(children).is_ok_and(|list| !list.is_empty());
            Pid::from_raw(init).filter(|_| started)
        });
        run.kill().expect("it runs");
        run.wait().expect("our child");
        sandbox.wait_for("init ends", || has_ended(init).then_some(()));
        sandbox.holm(&["ls"]).ok();
    }
}

/// `holm create` killed at random: the guest is there whole, or not at all.
fn create_killed(sandbox: &mut Sandbox) {
    for round in 0..20_u64 {
        let mut command = sandbox.command();
        command.args(["create", "box", "--base", "busybox", "--net", "none"]);
        command.args(["--", "sleep", "100000"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("holm runs");
        std::thread::sleep(std::time::Duration::from_micros(round * 400));
        let _ = child.kill();
        child.wait().expect("our child");
        if sandbox.holm(&["ls", "-q"]).ok().stdout.is_empty() {
            idle(sandbox, "create", "box");
        }
        works(sandbox);
        sandbox.holm(&["rm", "box"]).ok();
        let left = traces(sandbox);
        let left: Vec<_> =
            left.iter().filter(|t| t.starts_with("ids/") || t.starts_with("tmp/")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// The environment cannot make an installed Holm do what these tests need.
fn a_release_build_injects_no_faults(sandbox: &mut Sandbox) {
    let (release, faulty) = (&sandbox.options.holm, &sandbox.options.faulty);
    if release == faulty {
        skip("--holm is the build with faults");
    }
    let knows = |program: &Path, variable: &str| {
        let bytes = std::fs::read(program).expect("a program");
        bytes.windows(variable.len()).any(|window| window == variable.as_bytes())
    };
    for variable in ["HOLM_STOP_AT", "HOLM_PROBE_NO"] {
        assert!(knows(faulty, variable) && !knows(release, variable), "{variable}");
    }
    let mut command = sandbox.command();
    command.env("HOLM_STOP_AT", "base").env("HOLM_PROBE_NO", "overlay");
    sandbox.run(command.args(["run", "--base", "busybox", "--net", "none", "--", "true"])).ok();
}

fn a_stop_that_was_killed_lapses(sandbox: &mut Sandbox) {
    let script = "trap '' TERM; echo deaf; while :; do sleep 1; done";
    let args = ["launch", "box", "--base", "busybox", "--net", "none", "--", "sh", "-c", script];
    sandbox.holm(&args).ok();
    sandbox.wait_for("it hears no signal", || {
        sandbox.holm(&["logs", "box"]).stdout.contains("deaf").then_some(())
    });
    let mut command = sandbox.command();
    // Long enough to see its status while it waits.
    let time = format!("{}s", 8 * sandbox.options.patience());
    let mut stop = command.args(["stop", "box", "--timeout", &time]).spawn().expect("holm starts");
    sandbox.wait_for("it is being stopped", || {
        (status(sandbox, "box")["state"] == "stopping").then_some(())
    });
    stop.kill().expect("it runs");
    stop.wait().expect("it ends");
    sandbox.wait_for("nobody stops it any more", || {
        (status(sandbox, "box")["state"] != "stopping").then_some(())
    });
    exec(sandbox, "box", "true").ok();
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

/// What a killed `rename`, or a killed change of `security.nesting`, leaves.
fn ids_of_another_guest_are_not_released(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "box");
    idle(sandbox, "create", "other");
    let root = sandbox.root().to_owned();
    let note = |name: &str| root.join("guests").join(name).join("id");
    let noted = std::fs::read_to_string(note("other")).expect("its ids");
    std::fs::write(note("box"), &noted).expect("the note is written");
    sandbox.holm(&["start", "box", "other"]).ok();
    let base = |name| status(sandbox, name)["id_range"]["first"].as_u64().expect("its ids");
    assert_ne!(base("box"), base("other"));
    sandbox.holm(&["kill", "box"]).ok();
    // A guest that names another's ids must not release them.
    std::fs::write(note("box"), &noted).expect("the note is written");
    sandbox.holm(&["rm", "box"]).ok();
    let context = noted.split(' ').next().expect("a context id").to_owned();
    let link = root.join("ids").join(&context);
    assert!(link.is_symlink(), "those of the other stay taken");
    // What a killed removal has left in tmp, with the same ids.
    let trash = root.join("tmp/rm-gone-999999999");
    std::fs::create_dir_all(&trash).expect("a directory");
    std::fs::write(trash.join("id"), &noted).expect("its note");
    idle(sandbox, "create", "box");
    assert!(!trash.exists() && link.is_symlink(), "the directory goes, the ids stay");
    // A link whose guest was renamed by a command that was killed in between.
    std::fs::remove_file(&link).and_then(|()| symlink("../guests/before", &link)).expect("a link");
    sandbox.holm(&["rm", "--force", "other"]).ok();
    assert!(link.is_symlink());
    sandbox.holm(&["rm", "box"]).ok();
}

/// Commands are killed between the writing of a file and its move to where it belongs.
fn a_half_written_file_is_removed(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "box");
    let files = |sandbox: &Sandbox| {
        let mut names = Vec::new();
        for directory in ["", "guests/box", "ids", "tmp"] {
            let entries = std::fs::read_dir(sandbox.root().join(directory)).expect("there");
            names.extend(entries.flatten().map(|entry| entry.path()));
        }
        names.sort();
        names
    };
    sandbox.holm(&["ls"]).ok();
    let before = files(sandbox);
    for args in [&["set", "box", "memory.limit=64M"][..], &["rename", "box", "other"]] {
        let holm = sandbox.command();
        let mut command = Command::new("strace");
        command.args(["-f", "-q", "-o", "/dev/null", "-e", "trace=rename"]);
        command.args(["-e", "inject=rename:signal=KILL", "--"]).arg(holm.get_program());
        command.args(args).env("HOLM_ROOT", sandbox.root());
        let killed = sandbox.run(&mut command);
        assert!(!killed.status.success(), "{killed}");
        if sandbox.root().join("guests/other").exists() {
            sandbox.holm(&["rename", "other", "box"]).ok();
        }
        sandbox.holm(&["ls"]).ok();
        assert_eq!(files(sandbox), before, "{args:?}");
    }
    sandbox.holm(&["rm", "box"]).ok();
}
