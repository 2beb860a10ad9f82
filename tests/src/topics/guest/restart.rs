//! The restart policy, with the guest's own monitor alive.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::guest::{ended, status};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(on_failure_waits_twice_as_long_each_time).bases(&["busybox"]),
    test!(a_guest_that_ends_well_stays_stopped).bases(&["busybox"]),
    test!(quick_reboots_wait_longer_each_time).bases(&["busybox"]),
];

fn launch(sandbox: &Sandbox, policy: &str, script: &str) {
    let policy = format!("restart={policy}");
    let args = ["launch", "box", "--base", "busybox", "--net", "none", "--set", &policy, "--"];
    sandbox.holm(&[&args[..], &["sh", "-c", script]].concat()).ok();
}

fn begun(sandbox: &Sandbox) -> usize {
    sandbox.holm(&["logs", "box"]).ok().stdout.matches("begin").count()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs())
}

fn on_failure_waits_twice_as_long_each_time(sandbox: &mut Sandbox) {
    let waits = |restarts: u32| 1 << (restarts - 1);
    restarts_wait(sandbox, "on-failure", "exit 1", "exited 1", waits);
}

/// The first reboot is not delayed, the next ones wait as failed runs do.
fn quick_reboots_wait_longer_each_time(sandbox: &mut Sandbox) {
    let waits = |restarts: u32| if restarts == 1 { 0 } else { 1 << (restarts - 2) };
    restarts_wait(sandbox, "no", "reboot; exec sleep 1000", "rebooted", waits);
}

/// Each end is recorded after the previous start and before it is seen here; the next start is
/// planned exactly the wait later.
fn restarts_wait(
    sandbox: &Sandbox,
    policy: &str,
    script: &str,
    outcome: &str,
    waits: fn(u32) -> u64,
) {
    let (mut restarts, mut started) = (0, now());
    launch(sandbox, policy, &format!("echo begin; {script}"));
    // On a busy host a look may come too late for one of them.
    while restarts < 3 {
        let (pending, after) = sandbox.wait_for("it has ended once more", || {
            let status = status(sandbox, "box");
            let pending = seconds(status["pending_restart"]["at"].as_str()?);
            let so_far = status["last_run"]["restarts"].as_u64()?;
            let so_far = u32::try_from(so_far).ok().filter(|&so_far| so_far > restarts)?;
            assert_eq!(ended(&status), outcome, "{status}");
            restarts = so_far;
            Some((pending, now()))
        });
        let wait = waits(restarts);
        let possible = started + wait..=after + wait;
        assert!(possible.contains(&pending), "{pending} is not in {possible:?}");
        started = pending;
    }
    assert!(begun(sandbox) >= 3);
    // `stop` cancels the pending restart.
    sandbox.holm(&["stop", "box"]);
    let stopped = status(sandbox, "box");
    assert_eq!(stopped["state"], "stopped", "{stopped}");
    assert!(stopped["pending_restart"].is_null(), "{stopped}");
    sandbox.holm(&["rm", "box"]).ok();
}

fn a_guest_that_ends_well_stays_stopped(sandbox: &mut Sandbox) {
    // Fails once, then does what it was to do.
    let script = "echo begin; test -e /again || { touch /again; exit 1; }; exit 0";
    launch(sandbox, "on-failure", script);
    let status = sandbox.wait_for("it ends well", || {
        let status = status(sandbox, "box");
        (status["state"] == "stopped" && ended(&status) == "exited 0").then_some(status)
    });
    assert!(status["pending_restart"].is_null(), "{status}");
    assert_eq!(begun(sandbox), 2);
    sandbox.holm(&["rm", "box"]).ok();
}

/// A time of `--json` in seconds since 1970.
fn seconds(time: &str) -> u64 {
    let time = humantime::parse_rfc3339(time).expect("a time as RFC 3339 writes it");
    time.duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs()
}
