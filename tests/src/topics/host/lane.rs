//! The machine of a VM lane has what its kernel promises, and `holm doctor` finds it.

use super::doctor::{features, state};
use crate::options::Lane;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use std::fs::read_to_string;
use std::process::Command;

pub const TESTS: &[Test] = &[
    test!(is_what_users_have).not_in(Lane::Host, "any machine will do for the host lane"),
    test!(machine_of_the_lane).not_in(Lane::Host, "any machine will do for the host lane"),
];

/// Pure cgroup v2 with the controllers that Holm sets limits in, `AppArmor` on, systemd up.
fn is_what_users_have(sandbox: &mut Sandbox) {
    let mounts = read_to_string("/proc/self/mountinfo").expect("mountinfo");
    assert!(!mounts.contains(" - cgroup "), "a cgroup v1 hierarchy is mounted");
    let controllers =
        read_to_string("/sys/fs/cgroup/cgroup.controllers").expect("cgroup v2 at its usual place");
    for controller in ["cpu", "cpuset", "io", "memory", "pids"] {
        assert!(
            controllers.split_whitespace().any(|have| have == controller),
            "{controller} is not in {controllers}"
        );
    }
    assert_eq!(
        read_to_string("/sys/module/apparmor/parameters/enabled").expect("AppArmor").trim(),
        "Y"
    );
    let state = sandbox.run(Command::new("systemctl").arg("is-system-running"));
    assert_eq!(state.stdout.trim(), "running", "{state}");
}

/// Debian's kernels are known to have these: a probe that wrongly finds one missing is noticed.
fn machine_of_the_lane(sandbox: &mut Sandbox) {
    let outcome = sandbox.holm(&["doctor", "--json"]).ok();
    let all = features(&outcome.json());
    for name in [
        "kernel",
        "capabilities",
        "cgroup",
        "controllers",
        "time-namespace",
        "quota",
        "criu",
        "bpf",
        "nftables",
    ] {
        assert_eq!(state(&all, name), "ok", "{name}\n{outcome}");
    }
    let release = read_to_string("/proc/sys/kernel/osrelease").expect("a kernel");
    let old = release.starts_with("6.12.");
    assert_eq!(state(&all, "pidfd"), if old { "degraded" } else { "ok" }, "{release}{outcome}");
}
