//! A look that fails, for want of memory or descriptors, is no answer.

use std::path::Path;
use std::process::Command;

use crate::command::Outcome;
use crate::guest::{launch_idle, pid, remove, status};
use crate::process::{kill_hard, process};
use crate::sandbox::{Sandbox, skip};
use crate::test::{Test, test};
use crate::topics::net::topology::Topology;

pub const TESTS: &[Test] = &[
    test!(at_what_is_masked_leaves_nothing_in_sight).bases(&["busybox"]),
    test!(at_the_settings_of_a_protected_guest_leaves_it_running).bases(&["busybox"]),
    test!(at_shared_objects_removes_none).bases(&["busybox"]),
    test!(at_init_ends_it_by_no_other_way).bases(&["busybox"]),
    test!(at_name_servers_starts_no_guest_without_them).bases(&["busybox"]),
    test!(at_a_base_is_no_damage).bases(&["busybox"]),
    test!(at_what_a_guest_uses_is_told).bases(&["busybox"]),
    test!(at_a_count_keeps_nothing_from_being_cleaned_up).bases(&["busybox"]),
    test!(at_the_restart_policy_is_told).bases(&["busybox"]),
    test!(at_the_ruleset_is_told).bases(&["busybox"]),
    test!(at_a_console_starts_no_monitor_without_it).bases(&["busybox"]),
    test!(at_another_guests_address_gives_it_to_nobody).bases(&["busybox"]),
    test!(at_users_of_a_guest_is_told).bases(&["busybox"]),
    test!(at_the_link_of_an_id_frees_none).bases(&["busybox"]),
];

/// Runs `holm ARGS...`, whose calls strace(1) makes fail as `fault` says, at `path` if that is
/// given; returns how it ended, and whether any call has failed so.
pub fn with_fault(
    sandbox: &Sandbox,
    fault: &str,
    path: Option<&Path>,
    args: &[&str],
) -> (Outcome, bool) {
    let log = sandbox.beside("strace");
    let holm = sandbox.command();
    let mut command = Command::new("strace");
    command.args(["-f", "-q", "-e", "signal=none", "-o"]).arg(&log);
    if let Some(path) = path {
        command.arg("-P").arg(path);
    }
    let calls = fault.split(':').next().expect("calls");
    command.args(["-e", &format!("trace={calls}"), "-e", &format!("inject={fault}"), "--"]);
    command.arg(holm.get_program()).args(args);
    for (name, value) in holm.get_envs() {
        command.env(name, value.expect("a value"));
    }
    let outcome = sandbox.run(&mut command);
    let text = std::fs::read_to_string(log).expect("a log of strace");
    (outcome, text.contains("(INJECTED)"))
}

const NO_DESCRIPTOR: [&str; 2] = ["No file descriptors available", "Too many open files"];

#[track_caller]
fn names_the_error(outcome: &Outcome, words: &[&str]) {
    let said = words.iter().any(|words| outcome.stderr.contains(words));
    assert!(!outcome.status.success() && said, "{outcome}");
}

fn at_what_is_masked_leaves_nothing_in_sight(sandbox: &mut Sandbox) {
    let mut failed = 0;
    for nth in 1.. {
        let fault = format!("openat2:error=ENOMEM:when={nth}");
        let args = ["run", "--base", "busybox", "--net", "none", "--", "cat", "/proc/kallsyms"];
        let (outcome, hit) = with_fault(sandbox, &fault, None, &args);
        if !hit {
            break;
        }
        failed += u32::from(!outcome.status.success());
        assert_eq!(outcome.stdout, "", "{nth}: what is masked is empty");
    }
    assert!(failed > 10, "{failed} of the calls matter");
}

fn at_the_settings_of_a_protected_guest_leaves_it_running(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &["--set", "protect=true"]);
    let init = pid(&status(sandbox, "box"), "init_pid");
    let settings = sandbox.root().join("guests/box/guest.toml");
    let fault = "open,openat:error=EMFILE:when=1";
    let (outcome, hit) = with_fault(sandbox, fault, Some(&settings), &["rm", "--force", "box"]);
    assert!(hit, "{outcome}");
    names_the_error(&outcome, &NO_DESCRIPTOR);
    assert_eq!(pid(&status(sandbox, "box"), "init_pid"), init);
    sandbox.holm(&["set", "box", "protect=false"]).ok();
    remove(sandbox, "box");
}

/// `objects` is a link here: other roots use what is there.
fn at_shared_objects_removes_none(sandbox: &mut Sandbox) {
    let objects = sandbox.root().join("objects");
    assert!(objects.is_symlink());
    let own = sandbox.root().join("own");
    std::fs::create_dir_all(own.join("ab")).expect("objects of another root");
    let object = own.join("ab").join("c".repeat(62));
    std::fs::write(&object, "of another root\n").expect("an object");
    std::fs::write(own.join(".gc"), "").expect("a request");
    std::fs::remove_file(&objects).expect("the link");
    std::os::unix::fs::symlink(&own, &objects).expect("another link");
    for call in ["lstat", "newfstatat", "readlink", "readlinkat", "statx"] {
        let fault = format!("{call}:error=ENOMEM");
        with_fault(sandbox, &fault, Some(&objects), &["base", "ls"]);
        assert!(object.exists(), "{call}");
    }
}

fn at_init_ends_it_by_no_other_way(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    let fault = "pidfd_send_signal:error=ENOMEM";
    let (outcome, hit) = with_fault(sandbox, fault, None, &["stop", "box"]);
    assert!(hit, "{outcome}");
    names_the_error(&outcome, &["Out of memory"]);
    assert_ne!(pid(&status(sandbox, "box"), "init_pid"), 0);
    remove(sandbox, "box");
}

fn at_name_servers_starts_no_guest_without_them(sandbox: &mut Sandbox) {
    let servers = Path::new("/etc/resolv.conf");
    if !servers.exists() {
        skip("this host has no /etc/resolv.conf");
    }
    sandbox.holm(&["create", "box", "--base", "busybox", "--", "sleep", "100000"]).ok();
    let fault = "open,openat:error=EMFILE:when=1";
    let (outcome, hit) = with_fault(sandbox, fault, Some(servers), &["start", "box"]);
    assert!(hit, "{outcome}");
    names_the_error(&outcome, &NO_DESCRIPTOR);
    sandbox.holm(&["rm", "box"]).ok();
}

fn at_a_base_is_no_damage(sandbox: &mut Sandbox) {
    let image = sandbox.root().join("bases/busybox/image");
    let fault = "open,openat:error=EMFILE:when=1";
    let (outcome, hit) = with_fault(sandbox, fault, Some(&image), &["base", "ls"]);
    assert!(hit, "{outcome}");
    names_the_error(&outcome, &NO_DESCRIPTOR);
}

const NO_OPEN: &str = "open,openat:error=EMFILE";
/// Where the count of killed processes is, on v2 and on v1.
const OOM_KILLS: [&str; 2] = ["memory.events", "memory.oom_control"];

fn at_what_a_guest_uses_is_told(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &["--memory", "64M"]);
    let others = ["cpu.stat", "cpu.max", "cpu.cfs_quota_us", "pids.current", "pids.max"];
    let mut failed = 0;
    for file in OOM_KILLS.iter().chain(&others) {
        for verb in ["status", "logs"] {
            let (outcome, hit) =
                with_fault(sandbox, NO_OPEN, Some(Path::new(file)), &[verb, "box"]);
            if hit {
                names_the_error(&outcome, &NO_DESCRIPTOR);
                failed += 1;
            }
        }
        let ls = ["ls", "--columns", "state,cpu"];
        let (outcome, hit) = with_fault(sandbox, NO_OPEN, Some(Path::new(file)), &ls);
        if hit {
            assert!(outcome.ok().stdout.contains("unknown"), "one hides no others");
            failed += 1;
        }
    }
    // On hybrid hosts the kills for all three, and the CPU time, which `logs` does not read.
    assert!(failed >= 5, "{failed}");
    remove(sandbox, "box");
}

fn at_a_count_keeps_nothing_from_being_cleaned_up(sandbox: &mut Sandbox) {
    for file in OOM_KILLS {
        launch_idle(sandbox, "box", &["--memory", "64M"]);
        let init = process(sandbox, "init_pid");
        kill_hard(sandbox, process(sandbox, "monitor_pid"));
        kill_hard(sandbox, init);
        let (outcome, hit) = with_fault(sandbox, NO_OPEN, Some(Path::new(file)), &["ls"]);
        outcome.ok();
        let shown = status(sandbox, "box");
        assert_eq!(shown["state"], "stopped", "{shown}");
        assert_eq!(shown["last_run"]["oom_kills_known"], !hit, "{shown}");
        let text = sandbox.holm(&["status", "box"]).ok().stdout;
        assert_eq!(text.contains("not known how often it ran out of memory"), hit, "{text}");
        sandbox.holm(&["rm", "box"]).ok();
    }
}

fn at_the_restart_policy_is_told(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &["--set", "restart=always"]);
    let init = process(sandbox, "init_pid");
    kill_hard(sandbox, process(sandbox, "monitor_pid"));
    kill_hard(sandbox, init);
    let settings = sandbox.root().join("guests/box/guest.toml");
    let fault = format!("{NO_OPEN}:when=1");
    let (outcome, hit) = with_fault(sandbox, &fault, Some(&settings), &["ls"]);
    assert!(hit, "{outcome}");
    outcome.ok();
    let text = sandbox.holm(&["status", "box"]).ok().stdout;
    let said = NO_DESCRIPTOR.iter().any(|words| text.contains(words));
    assert!(said && text.contains("restart, which could not be read"), "{text}");
    sandbox.holm(&["rm", "box"]).ok();
}

/// In a network namespace, whose ruleset may be flushed. A request that fails hides no flushed
/// ruleset.
fn at_the_ruleset_is_told(sandbox: &mut Sandbox) {
    let topology = Topology::new();
    let holm = |args: &[&str]| topology.host.with(|| sandbox.holm(args));
    holm(&["launch", "box", "--base", "busybox", "--", "sleep", "100000"]).ok();
    let mut failed = 0;
    for nth in 1.. {
        topology.host.sh("nft flush ruleset");
        let fault = format!("socket:error=EMFILE:when={nth}");
        let (outcome, hit) = topology.host.with(|| with_fault(sandbox, &fault, None, &["ls"]));
        if !hit {
            break;
        }
        failed += 1;
        assert!(NO_DESCRIPTOR.iter().any(|words| outcome.stderr.contains(words)), "{outcome}");
    }
    assert!(failed > 2, "{failed} requests");
    let lock = sandbox.root().join("guests/box");
    topology.host.sh("nft flush ruleset");
    let (outcome, hit) =
        topology.host.with(|| with_fault(sandbox, "flock:error=ENOLCK", Some(&lock), &["ls"]));
    assert!(hit && outcome.stderr.contains("No locks available"), "{outcome}");
    holm(&["rm", "--force", "box"]).ok();
}

fn at_a_console_starts_no_monitor_without_it(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    kill_hard(sandbox, process(sandbox, "monitor_pid"));
    let fault = "pidfd_getfd:error=EMFILE:when=1";
    let (outcome, hit) = with_fault(sandbox, fault, None, &["status", "box"]);
    assert!(hit, "{outcome}");
    names_the_error(&outcome, &NO_DESCRIPTOR);
    let again = sandbox.holm(&["status", "box"]).ok();
    assert!(again.stderr.contains("a new one was started"), "{again}");
    remove(sandbox, "box");
}

fn at_another_guests_address_gives_it_to_nobody(sandbox: &mut Sandbox) {
    let address = "net.address=203.0.113.9";
    let create = ["create", "box", "--base", "busybox", "--set", address];
    sandbox.holm(&create).ok();
    let settings = sandbox.root().join("guests/box/guest.toml");
    let other = ["create", "other", "--base", "busybox", "--set", address];
    let (outcome, hit) = with_fault(sandbox, NO_OPEN, Some(&settings), &other);
    assert!(hit, "{outcome}");
    names_the_error(&outcome, &NO_DESCRIPTOR);
    assert!(!sandbox.holm(&["ls", "-q"]).ok().stdout.contains("other"));
    sandbox.holm(&["rm", "box"]).ok();
}

fn at_users_of_a_guest_is_told(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &[]);
    for list in ["/etc/passwd", "/etc/group"] {
        let fault = "open,openat:error=ENOMEM";
        let exec = ["exec", "box", "--", "true"];
        let (outcome, hit) = with_fault(sandbox, fault, Some(Path::new(list)), &exec);
        assert!(hit, "{outcome}");
        names_the_error(&outcome, &["Out of memory", "Cannot allocate memory"]);
    }
    remove(sandbox, "box");
}

fn at_the_link_of_an_id_frees_none(sandbox: &mut Sandbox) {
    let fault = "readlink,readlinkat:error=ENOMEM";
    launch_idle(sandbox, "box", &[]);
    let ids = sandbox.root().join("ids");
    let link = ids.read_dir().expect("ids").next().expect("one guest").expect("a link").path();
    for stopped in [false, true] {
        let args: &[&[&str]] = if stopped { &[&["start", "box"], &["ls"]] } else { &[&["ls"]] };
        for args in args {
            let (outcome, hit) = with_fault(sandbox, fault, Some(&link), args);
            assert!(hit, "{outcome}");
            names_the_error(&outcome, &["Out of memory", "Cannot allocate memory"]);
            assert!(link.is_symlink(), "{outcome}");
            assert_eq!(ids.read_dir().expect("ids").count(), 1, "{outcome}");
        }
        if !stopped {
            sandbox.holm(&["stop", "box"]).ok();
        }
    }
    sandbox.holm(&["rm", "box"]).ok();
}
