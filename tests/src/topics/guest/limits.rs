//! Each limit is set and seen to be enforced.

use crate::guest::{ended, exec, launch_idle, remove, status};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(memory_kills_inside_only).bases(&["busybox"]),
    test!(files_in_memory_do_not_end_init).bases(&["busybox"]),
    test!(pids_stop_a_fork_bomb).bases(&["busybox"]),
    test!(cpu_cap_slows).bases(&["busybox"]),
    test!(cpu_set_pins).bases(&["busybox"]),
    test!(shm_is_bounded).bases(&["busybox"]),
    test!(limits_change_while_the_guest_runs).bases(&["busybox"]),
    test!(a_refused_change_changes_nothing).bases(&["busybox"]),
    test!(what_cannot_be_is_refused).bases(&["busybox"]),
];

/// Settings that bind the probe into a guest.
fn probe(sandbox: &Sandbox) -> String {
    format!("{}:/probe:ro", sandbox.probe_directory().display())
}

fn memory_kills_inside_only(sandbox: &mut Sandbox) {
    let mount = probe(sandbox);
    launch_idle(sandbox, "box", &["--memory", "64M", "-v", &mount]);
    let before = status(sandbox, "box");
    let outcome = sandbox.holm(&["exec", "box", "/probe/holm-probe", "memory", "268435456"]);
    assert_eq!(outcome.code(), 137, "killed for want of memory\n{outcome}");
    assert!(outcome.stdout.contains("32 MiB") && !outcome.stdout.contains("128 MiB"), "{outcome}");
    let after = status(sandbox, "box");
    assert_eq!(after["init_pid"], before["init_pid"], "the guest itself lives");
    assert!(after["limits"]["memory"]["oom_kills"].as_u64() >= Some(1), "{after}");
    exec(sandbox, "box", "echo alive").ok();
    let remark = |run: &str| {
        let log = sandbox.holm(&["logs", "box"]).ok();
        assert!(log.stderr.starts_with("holm: guest box ran out of memory: "), "{log}");
        assert!(log.stderr.ends_with(&format!(" killed in {run} run\n")), "{log}");
        assert!(!log.stdout.contains("memory"), "what a guest wrote stays as it is\n{log}");
    };
    remark("this");
    sandbox.holm(&["stop", "box"]).ok();
    remark("the last");
    sandbox.holm(&["rm", "box"]).ok();
}

/// [S13] Files in memory are no part of a process's size, so the kernel may end any. Minimal init
/// is the smallest, and lives to tell how its command has ended.
fn files_in_memory_do_not_end_init(sandbox: &mut Sandbox) {
    let mount = probe(sandbox);
    let script = "[ -e /again ] && exec sleep 100000
        touch /again; exec /probe/holm-probe use-up memory-files 100000";
    let args = ["launch", "box", "--base", "busybox", "--net", "none", "--memory", "32M"];
    let more = ["-v", &mount, "--set", "restart=on-failure", "--", "sh", "-c", script];
    sandbox.holm(&[&args[..], &more].concat()).ok();
    let after = sandbox.wait_for("the guest has started again", || {
        let now = status(sandbox, "box");
        (now["state"] == "ready" && now["last_run"].is_object()).then_some(now)
    });
    assert_eq!(ended(&after), "exited 137", "its command was killed, not init: {after}");
    assert!(after["last_run"]["oom_kills"].as_u64() >= Some(1), "{after}");
    remove(sandbox, "box");
}

fn pids_stop_a_fork_bomb(sandbox: &mut Sandbox) {
    let mount = probe(sandbox);
    let args =
        ["run", "--base", "busybox", "--net", "none", "-v", &mount, "--set", "pids.limit=20"];
    let outcome =
        sandbox.holm(&[&args[..], &["--", "/probe/holm-probe", "forks", "100"]].concat()).ok();
    let forks: u32 = outcome
        .stdout
        .split(' ')
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or_else(|| panic!("{outcome}"));
    assert!((5..20).contains(&forks), "{outcome}");
}

fn cpu_cap_slows(sandbox: &mut Sandbox) {
    let mount = probe(sandbox);
    let args = ["run", "--base", "busybox", "--net", "none", "-v", &mount, "--cpu", "0.25"];
    let outcome =
        sandbox.holm(&[&args[..], &["--", "/probe/holm-probe", "cpu", "2"]].concat()).ok();
    let got: f64 = outcome
        .stdout
        .split(' ')
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or_else(|| panic!("{outcome}"));
    // Half a second; a busy machine gives less, and the first period may be free.
    assert!((0.05..1.0).contains(&got), "{outcome}");
}

fn cpu_set_pins(sandbox: &mut Sandbox) {
    let args =
        ["run", "--base", "busybox", "--net", "none", "--set", "cpu.set=0", "--", "sh", "-c"];
    let outcome = sandbox
        .holm(&[&args[..], &["nproc; grep Cpus_allowed_list /proc/self/status"]].concat())
        .ok();
    assert_eq!(outcome.stdout, "1\nCpus_allowed_list:\t0\n", "{outcome}");
}

fn shm_is_bounded(sandbox: &mut Sandbox) {
    let args =
        ["run", "--base", "busybox", "--net", "none", "--set", "memory.shm=4M", "--", "sh", "-c"];
    let script = "dd if=/dev/zero of=/dev/shm/x bs=1M count=16 2>/dev/null; stat -c %s /dev/shm/x";
    let outcome = sandbox.holm(&[&args[..], &[script]].concat()).ok();
    assert_eq!(outcome.stdout.trim(), "4194304", "{outcome}");
}

fn limits_change_while_the_guest_runs(sandbox: &mut Sandbox) {
    let mount = probe(sandbox);
    launch_idle(sandbox, "box", &["-v", &mount]);
    let forks = ["exec", "box", "/probe/holm-probe", "forks", "60"];
    assert!(sandbox.holm(&forks).ok().stdout.starts_with("60 "), "no limit yet");
    sandbox.holm(&["set", "box", "pids.limit=30"]).ok();
    let outcome = sandbox.holm(&forks).ok();
    assert!(!outcome.stdout.starts_with("60 "), "{outcome}");
    sandbox.holm(&["unset", "box", "pids.limit"]).ok();
    assert!(sandbox.holm(&forks).ok().stdout.starts_with("60 "), "lifted again");
    remove(sandbox, "box");
}

fn a_refused_change_changes_nothing(sandbox: &mut Sandbox) {
    let mount = probe(sandbox);
    let holds =
        "x=$(head -c 40000000 /dev/zero | tr '\\0' x); echo holds; while :; do sleep 1; done";
    let args = ["launch", "box", "--base", "busybox", "--net", "none", "-v", &mount];
    sandbox.holm(&[&args[..], &["--", "sh", "-c", holds]].concat()).ok();
    sandbox.wait_for("it holds memory", || {
        sandbox.holm(&["logs", "box"]).stdout.contains("holds").then_some(())
    });
    let set = ["set", "box", "pids.limit=30", "memory.limit=8M"];
    sandbox.holm(&set).refused(&["memory.limit", "uses more than that"]);
    let outcome = sandbox.holm(&["exec", "box", "/probe/holm-probe", "forks", "60"]).ok();
    assert!(outcome.stdout.starts_with("60 "), "the other limit is not there either\n{outcome}");
    remove(sandbox, "box");
}

fn what_cannot_be_is_refused(sandbox: &mut Sandbox) {
    let create = ["create", "box", "--base", "busybox", "--set"];
    for (setting, message) in [
        ("memory.limit=10", "memory.limit"),
        ("memory.limit=much", "memory.limit"),
        ("cpu.set=4000-5000", "cpu"),
        ("pids.limit=-1", "pids.limit"),
    ] {
        sandbox.holm(&[&create[..], &[setting]].concat()).rejected(&[message]);
    }
    assert_eq!(sandbox.holm(&["ls", "-q"]).ok().stdout, "", "nothing was made");
}
