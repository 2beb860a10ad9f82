//! Limits changed while the guest runs.

use super::group::{Group, Worker, until};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use holm::cgroup::{Controller, Error, Limits};

pub const TESTS: &[Test] =
    &[test!(given_to_a_running_guest), test!(memory_up_and_down), test!(memory_below_what_is_held)];

fn given_to_a_running_guest(_: &mut Sandbox) {
    let group = Group::new();
    let cgroup = group.create(&Limits::default());
    // Twenty processes that do nothing but end and begin again.
    let script = "for i in {1..20}; do (while :; do (:); done) & done; read";
    let mut worker = Worker::start(&cgroup, script);
    until("they run", || cgroup.pids().unwrap().len() > 20);
    cgroup
        .set_limits(&Limits { pids: Some(15), memory: Some(512 << 20), ..Limits::default() })
        .unwrap();
    // Those that are too many stay, but none comes back: each ends at its next fork.
    until("forks are refused", || {
        group
            .read(Controller::Pids, "pids.events", "pids.events")
            .lines()
            .any(|line| line != "max 0")
    });
    let text = std::fs::read_to_string(format!("/proc/{}/cgroup", worker.pid())).unwrap();
    let here = format!("/{}/g", group.name);
    if !group.cgroup.layout().is_pure_v2() {
        assert_eq!(text.lines().filter(|line| line.ends_with(&here)).count(), 2, "{text}");
    }
    cgroup.set_limits(&Limits::default()).unwrap();
    assert_eq!(group.read(Controller::Pids, "pids.max", "pids.max"), "max");
    assert!(worker.alive());
}

fn memory_up_and_down(_: &mut Sandbox) {
    let group = Group::new();
    let limits = |memory: u64, swap| Limits {
        memory: Some(memory << 20),
        swap: Some(swap),
        ..Limits::default()
    };
    let cgroup = group.create(&limits(64, 0));
    let now = || group.read(Controller::Memory, "memory.max", "memory.limit_in_bytes");
    for (memory, swap) in [(512, 0), (32, 1 << 20), (1024, 0), (64, 0)] {
        cgroup.set_limits(&limits(memory, swap)).unwrap();
        assert_eq!(now(), (memory << 20).to_string());
    }
    cgroup.set_limits(&Limits::default()).unwrap();
    let text = now();
    assert!(text == "max" || text.parse::<u64>().unwrap() > 1 << 60, "{text}");
}

fn memory_below_what_is_held(_: &mut Sandbox) {
    for at_start in [Some(512 << 20), None] {
        let group = Group::new();
        let cgroup = group.create(&Limits {
            memory: at_start,
            swap: at_start.map(|_| 0),
            ..Limits::default()
        });
        let mut worker = Worker::start(
            &cgroup,
            "x=$(head -c 64M /dev/zero | tr '\\0' x); echo ${#x}; read; echo still here; read",
        );
        assert_eq!(worker.line(), (64 << 20).to_string());
        let lower = Limits { memory: Some(24 << 20), swap: Some(0), ..Limits::default() };
        match cgroup.set_limits(&lower) {
            Err(error @ Error::Invalid { key: "memory.limit", .. }) => {
                assert!(error.to_string().contains("uses more than that now"), "{error}");
            }
            other => panic!("{other:?}"),
        }
        worker.go_on();
        assert_eq!(worker.line(), "still here");
        assert_eq!(cgroup.oom_kills().unwrap(), 0);
        cgroup.set_limits(&Limits { memory: Some(256 << 20), ..Limits::default() }).unwrap();
    }
}
