//! Two commands at the same time.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread;

use crate::command::Outcome;
use crate::guest::{IDLE, exec, idle, pid, status};
use crate::host::Snapshot;
use crate::host::free_port;
use crate::process::Stopped;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use crate::traces::changes_nothing;

pub const TESTS: &[Test] = &[
    test!(two_starts).bases(&["busybox"]),
    test!(two_creates).bases(&["busybox"]),
    test!(start_against_rm).bases(&["busybox"]),
    test!(start_against_stop).bases(&["busybox"]),
    test!(kill_against_a_start_that_hangs).bases(&["busybox"]),
    test!(a_released_root_has_nothing_on_the_host).bases(&["busybox"]),
    test!(release_against_run).bases(&["busybox"]),
];

pub const ROUNDS: usize = 6;

/// Runs both commands at once.
pub fn both(sandbox: &Sandbox, one: &[&str], two: &[&str]) -> [Outcome; 2] {
    thread::scope(|scope| {
        let threads = [one, two].map(|args| scope.spawn(move || sandbox.holm(args)));
        threads.map(|thread| thread.join().expect("a command"))
    })
}

/// The one that failed. Exactly one must fail.
#[track_caller]
fn loser([one, two]: [Outcome; 2]) -> Outcome {
    match (one.status.success(), two.status.success()) {
        (true, false) => two,
        (false, true) => one,
        _ => panic!("one must win, one must lose\n{one}\n{two}"),
    }
}

fn two_starts(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "box");
    changes_nothing(sandbox, |sandbox| {
        for _ in 0..ROUNDS {
            let start = ["start", "box"];
            loser(both(sandbox, &start, &start)).refused(&["guest box", "already running"]);
            let state = status(sandbox, "box");
            assert!(pid(&state, "init_pid") > 0 && pid(&state, "monitor_pid") > 0, "{state}");
            sandbox.holm(&["stop", "box"]).ok();
        }
    });
    sandbox.holm(&["rm", "box"]).ok();
}

fn two_creates(sandbox: &mut Sandbox) {
    changes_nothing(sandbox, |sandbox| {
        for _ in 0..ROUNDS {
            let create = [&["create", "box"][..], &IDLE].concat();
            loser(both(sandbox, &create, &create)).refused(&["guest box", "already"]);
            sandbox.holm(&["rm", "box"]).ok();
        }
    });
}

fn start_against_rm(sandbox: &mut Sandbox) {
    changes_nothing(sandbox, |sandbox| {
        for _ in 0..ROUNDS {
            idle(sandbox, "create", "box");
            let [start, rm] = both(sandbox, &["start", "box"], &["rm", "box"]);
            if start.status.success() {
                rm.refused(&["guest box", "running", "holm stop box"]);
                exec(sandbox, "box", "true").ok();
                sandbox.holm(&["rm", "--force", "box"]).ok();
            } else {
                start.refused(&["no guest box"]);
                rm.ok();
            }
        }
    });
}

fn start_against_stop(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "box");
    changes_nothing(sandbox, |sandbox| {
        for _ in 0..ROUNDS {
            let [start, stop] = both(sandbox, &["start", "box"], &["stop", "box"]);
            start.ok();
            if stop.status.success() {
                assert_eq!(status(sandbox, "box")["state"], "stopped");
            } else {
                stop.refused(&["guest box", "not running"]);
                sandbox.holm(&["stop", "box"]).ok();
            }
        }
    });
    sandbox.holm(&["rm", "box"]).ok();
}

/// `kill` does not wait for the lock that the start holds.
fn kill_against_a_start_that_hangs(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "box");
    changes_nothing(sandbox, |sandbox| {
        for step in ["record", "wait-for-init", "pivot"] {
            let mut start = Stopped::new(sandbox, &["start", "box"], step);
            sandbox.holm(&["kill", "box"]).ok();
            let ended = sandbox.wait_for("the start ends", || start.try_wait());
            assert!(!ended.success(), "{step}");
            sandbox.holm(&["kill", "box"]).refused(&["guest box", "not running"]);
        }
    });
    sandbox.holm(&["rm", "box"]).ok();
}

/// Gives a root that has not been used the lowest free instance number. Other tests get the
/// highest: none takes this one when it is given back.
fn take_a_low_number(sandbox: &Sandbox) -> u32 {
    let instances = Path::new("/run/holm/instances");
    std::fs::create_dir_all(instances).expect("the directory of instances");
    let take = |number: &u32| symlink(sandbox.root(), instances.join(number.to_string())).is_ok();
    let number = (2..=27).find(take).expect("a free instance number");
    std::fs::write(sandbox.root().join("instance"), format!("{number}\n")).expect("its file");
    number
}

fn a_released_root_has_nothing_on_the_host(sandbox: &mut Sandbox) {
    let number = take_a_low_number(sandbox);
    let publish = format!("127.0.0.1:{}:80", free_port());
    let options = ["--set", "net.mode=private", "--publish", &publish];
    sandbox.holm(&[&["launch", "box"][..], &options, &IDLE].concat()).ok();
    let instance = sandbox.instance();
    assert_eq!(instance, Some(number));
    sandbox.holm(&["release"]).refused(&["box", "holm stop --all"]);
    sandbox.holm(&["stop", "box"]).ok();
    let there = Snapshot::take().of(sandbox.root(), instance);
    for kind in ["cgroup ", "nft ", "file "] {
        assert!(there.iter().any(|item| item.starts_with(kind)), "no {kind}in {there:#?}");
    }
    sandbox.holm(&["release"]).ok();
    let left = Snapshot::take().of(sandbox.root(), instance);
    assert!(left.is_empty(), "{left:#?}");
    assert!(!sandbox.root().join("instance").exists(), "the number is another's to take");

    // The guest is still there, and starts as if nothing had been.
    sandbox.holm(&["start", "box"]).ok();
    sandbox.holm(&["exec", "box", "true"]).ok();
    sandbox.holm(&["stop", "box"]).ok();
    sandbox.holm(&["rm", "box"]).ok();
    let nowhere = sandbox.root().join("nowhere");
    sandbox.holm(&["--root", &nowhere.to_string_lossy(), "release"]).refused(&["no Holm root"]);
    assert!(!nowhere.exists());
}

/// A command that uses the root's instance number keeps it, so no release can break a start.
fn release_against_run(sandbox: &mut Sandbox) {
    let run = ["run", "--base", "busybox", "--net", "none", "true"];
    sandbox.holm(&["ls"]).ok();
    for _ in 0..2 * ROUNDS {
        let [release, run] = both(sandbox, &["release"], &run);
        run.ok();
        if !release.status.success() {
            release.refused(&["is running in"]);
        }
    }
    sandbox.holm(&["release"]).ok();
}
