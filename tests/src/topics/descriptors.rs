//! Descriptors of whoever calls `holm`: a shell, a service or a test program may have files of the
//! host open, and none of them may reach a guest or outlive the command in a monitor.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::guest::{IDLE, exec, pid, status};
use crate::sandbox::Sandbox;
use crate::source::{fake_systemd, system};
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(of_the_caller_reach_no_guest_that_stays).bases(&["busybox"]),
    test!(of_the_caller_reach_no_system_init),
    test!(of_the_caller_reach_no_command).bases(&["busybox"]),
];

/// A file of the host that the caller of each command has open as descriptors 7 and 300.
fn secret(sandbox: &Sandbox) -> PathBuf {
    let path = sandbox.root().join("secret of the host");
    fs::write(&path, "secret\n").expect("a file");
    path
}

/// `holm ARGS...`, called by someone who has `secret` open.
fn called_with(sandbox: &Sandbox, secret: &Path, args: &[&str]) -> Command {
    let holm = sandbox.command();
    let mut caller = Command::new("bash");
    caller.args(["-c", "file=$1; shift; exec 7<\"$file\" 300<\"$file\"; exec \"$@\"", "caller"]);
    caller.arg(secret).arg(holm.get_program()).args(args);
    caller.envs(holm.get_envs().filter_map(|(name, value)| Some((name, value?))));
    caller
}

/// What a process has open.
fn open_files(pid: i32) -> Vec<PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).expect("its descriptors");
    entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok()).collect()
}

#[track_caller]
fn has_not(secret: &Path, pid: i32, whose: &str) {
    let open = open_files(pid);
    assert!(!open.is_empty() && !open.iter().any(|file| file == secret), "{whose}: {open:?}");
}

/// Init of a guest that stays, what it executes, and the monitor.
fn of_the_caller_reach_no_guest_that_stays(sandbox: &mut Sandbox) {
    let secret = secret(sandbox);
    sandbox.run(&mut called_with(sandbox, &secret, &[&["launch", "box"], &IDLE[..]].concat())).ok();
    let status = status(sandbox, "box");
    has_not(&secret, pid(&status, "init_pid"), "init");
    has_not(&secret, pid(&status, "monitor_pid"), "the monitor");
    let inside = exec(sandbox, "box", "cat /proc/[0-9]*/fd/7 /proc/[0-9]*/fd/300");
    assert!(!inside.stdout.contains("secret"), "{inside}");
    sandbox.run(&mut called_with(sandbox, &secret, &["restart", "box"])).ok();
    let status = crate::guest::status(sandbox, "box");
    has_not(&secret, pid(&status, "init_pid"), "init after a restart");
    has_not(&secret, pid(&status, "monitor_pid"), "the monitor after a restart");
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

/// An init of a distribution is executed, and closes nothing itself.
fn of_the_caller_reach_no_system_init(sandbox: &mut Sandbox) {
    let secret = secret(sandbox);
    let source = system(sandbox, |dir| fake_systemd(dir, "#!/bin/sh\nexec sleep 100000\n"));
    sandbox.holm(&["base", "import", "odd", &source]).ok();
    let launch = ["launch", "box", "--base", "odd", "--init", "system", "--net", "none"];
    sandbox.run(&mut called_with(sandbox, &secret, &launch)).ok();
    has_not(&secret, pid(&status(sandbox, "box"), "init_pid"), "init");
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

/// Commands of `run` and `exec`, whose standard streams are the caller's.
fn of_the_caller_reach_no_command(sandbox: &mut Sandbox) {
    let secret = secret(sandbox);
    let look = ["sh", "-c", "cd /proc/self/fd; echo *; cat /proc/[0-9]*/fd/7 2>/dev/null; true"];
    sandbox.holm(&[&["launch", "box"], &IDLE[..]].concat()).ok();
    let run = ["run", "--base", "busybox", "--net", "none", "--"];
    for verb in [&run[..], &["exec", "box", "--"]] {
        let args = [verb, &look].concat();
        let printed = sandbox.run(&mut called_with(sandbox, &secret, &args)).ok().stdout;
        // 3 is the directory that the shell reads.
        assert!(["0 1 2\n", "0 1 2 3\n"].contains(&&*printed), "{verb:?}: {printed}");
    }
    // Init of an ephemeral guest is a copy of `holm run`.
    let args = [&["run", "--name=once"], &IDLE[..]].concat();
    let mut command = called_with(sandbox, &secret, &args).spawn().expect("holm runs");
    let init = sandbox.wait_for("init has started the command", || {
        let listed = sandbox.holm(&["ls", "--json", "--running"]).ok().json();
        let mut guests = listed.as_array()?.iter();
        let init = guests.find(|guest| guest["name"] == "once")?["init_pid"].as_i64()?;
        let children = fs::read_to_string(format!("/proc/{init}/task/{init}/children")).ok()?;
        i32::try_from(init).ok().filter(|_| !children.is_empty())
    });
    has_not(&secret, init, "init of an ephemeral guest");
    sandbox.holm(&["kill", "once"]).ok();
    command.wait().expect("our child");
    sandbox.holm(&["rm", "--force", "box"]).ok();
}
