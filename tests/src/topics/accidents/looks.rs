//! A look that fails, for want of memory or descriptors, is no answer.

use std::path::Path;
use std::process::Command;

use crate::command::Outcome;
use crate::guest::{launch_idle, pid, remove, status};
use crate::sandbox::{Sandbox, skip};
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(at_what_is_masked_leaves_nothing_in_sight).bases(&["busybox"]),
    test!(at_the_settings_of_a_protected_guest_leaves_it_running).bases(&["busybox"]),
    test!(at_shared_objects_removes_none).bases(&["busybox"]),
    test!(at_init_ends_it_by_no_other_way).bases(&["busybox"]),
    test!(at_name_servers_starts_no_guest_without_them).bases(&["busybox"]),
    test!(at_a_base_is_no_damage).bases(&["busybox"]),
];

/// Runs `holm ARGS...`, whose calls strace(1) makes fail as `fault` says, at `path` if that is
/// given; returns how it ended, and whether any call has failed so.
fn with_fault(
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
