//! Each limit is set, changed while a guest runs, and seen to be enforced.

use super::group::{Group, Worker, until};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};
use holm::cgroup::{Controller, Error, Figures, GuestCgroup, Limits};
use std::process::Command;

pub const TESTS: &[Test] = &[
    test!(written_as_asked),
    test!(cpu_cap_throttles),
    test!(cpu_set_holds),
    test!(memory_kills_inside_only),
    test!(pids_refuse_a_fork),
    test!(refused_with_a_reason),
    test!(given_to_a_running_guest),
    test!(memory_up_and_down),
    test!(memory_below_usage),
];

fn written_as_asked(_: &mut Sandbox) {
    use Controller::{Cpu, Cpuset, Memory, Pids};
    let group = Group::new();
    let limits = Limits {
        cpu_share: Some(300),
        cpu_cap: Some(0.5),
        cpu_set: Some("0".to_owned()),
        memory: Some(64 << 20),
        swap: Some(16 << 20),
        pids: Some(30),
    };
    let cgroup = group.create(&limits);
    let pure = group.cgroup.layout().is_pure_v2().expect("the hierarchies");
    let of = |v2: &str, v1: &str| if pure { v2.to_owned() } else { v1.to_owned() };
    assert_eq!(group.read(Cpu, "cpu.weight", "cpu.shares"), of("300", "3072"));
    assert_eq!(group.read(Cpu, "cpu.max", "cpu.cfs_quota_us"), of("50000 100000", "50000"));
    assert_eq!(group.read(Cpuset, "cpuset.cpus", "cpuset.cpus"), "0");
    assert_eq!(group.read(Memory, "memory.max", "memory.limit_in_bytes"), "67108864");
    assert_eq!(
        group.read(Memory, "memory.swap.max", "memory.memsw.limit_in_bytes"),
        of("16777216", "83886080")
    );
    assert_eq!(group.read(Pids, "pids.max", "pids.max"), "30");
    assert_eq!(cgroup.v1_tasks().len(), if pure { 0 } else { group.v1_dirs().len() });
    let opened = GuestCgroup::open(&group.cgroup, "g").unwrap().unwrap();
    assert_eq!(opened.open_v1_tasks().unwrap().len(), cgroup.v1_tasks().len());
    limits.check_host(group.cgroup.layout()).unwrap();
    let worker = Worker::start(&cgroup, "read");
    let usage = cgroup.usage(Figures::All).unwrap();
    assert_eq!(usage.pids, Some(1));
    assert!(
        usage.memory.unwrap() > 0 && usage.memory_peak.unwrap() >= usage.memory.unwrap() / 2,
        "{usage:?}"
    );
    drop(worker);
}

fn cpu_cap_throttles(_: &mut Sandbox) {
    let group = Group::new();
    let cgroup = group.create(&Limits { cpu_cap: Some(0.1), ..Limits::default() });
    let _busy = Worker::start(&cgroup, "while :; do :; done");
    let throttled = || {
        let stat = group.read(Controller::Cpu, "cpu.stat", "cpu.stat");
        stat.lines()
            .any(|line| line.strip_prefix("nr_throttled ").is_some_and(|count| count != "0"))
    };
    until("it is throttled", throttled);
    // 50 ms of time used take 400 ms at least at a tenth of a CPU; never less, however slow the
    // machine.
    let (begin, used) = (std::time::Instant::now(), cgroup.usage(Figures::All).unwrap().cpu_usec);
    until("it used 50 ms", || cgroup.usage(Figures::All).unwrap().cpu_usec >= used + 50_000);
    assert!(begin.elapsed().as_millis() >= 200, "{:?} for 50 ms", begin.elapsed());
}

fn cpu_set_holds(_: &mut Sandbox) {
    let group = Group::new();
    let cgroup = group.create(&Limits { cpu_set: Some("0".to_owned()), ..Limits::default() });
    let worker = Worker::start(&cgroup, "read");
    assert_eq!(worker.status("Cpus_allowed_list"), "0");
    let free = Group::new();
    let all = Worker::start(&free.create(&Limits::default()), "read").status("Cpus_allowed_list");
    assert_ne!(all, "0", "a machine of one CPU shows nothing");
    cgroup.set_limits(&Limits::default()).unwrap();
    assert_eq!(worker.status("Cpus_allowed_list"), all, "lifted while it runs");
    cgroup.set_limits(&Limits { cpu_set: Some("1".to_owned()), ..Limits::default() }).unwrap();
    assert_eq!(worker.status("Cpus_allowed_list"), "1");
}

/// A shell line that holds 128 MiB, if it is let.
const HOG: &str = "head -c 128M /dev/zero | tail -n1 | wc -c";

fn memory_kills_inside_only(_: &mut Sandbox) {
    let group = Group::new();
    let cgroup =
        group.create(&Limits { memory: Some(32 << 20), swap: Some(0), ..Limits::default() });
    let mut outside = Command::new("sleep").arg("1000").spawn().unwrap();
    assert_eq!(cgroup.oom_kills().unwrap(), 0);
    let mut other = Worker::start(&cgroup, "read; echo still here");
    // The kernel takes the largest, and now and then a second one while the first one's memory is
    // still counted: one of the hog's, its shell included.
    let mut hog = Worker::start(&cgroup, &format!("echo 1000 >/proc/self/oom_score_adj; {HOG}"));
    assert!(["0", ""].contains(&hog.line().as_str()), "it got no 128 MiB");
    assert!(cgroup.oom_kills().unwrap() >= 1);
    other.resume();
    assert_eq!(other.line(), "still here");
    assert!(outside.try_wait().unwrap().is_none());
    outside.kill().unwrap();
    outside.wait().unwrap();
    assert!(cgroup.usage(Figures::All).unwrap().memory_peak.unwrap() <= 32 << 20);
    drop((hog, other));

    let roomy = Group::new();
    let mut worker =
        Worker::start(&roomy.create(&Limits { memory: Some(512 << 20), ..Limits::default() }), HOG);
    assert_eq!(worker.line(), (128 << 20).to_string(), "with room the same line succeeds");
}

fn pids_refuse_a_fork(_: &mut Sandbox) {
    let group = Group::new();
    let cgroup = group.create(&Limits { pids: Some(5), ..Limits::default() });
    let _worker = Worker::start(&cgroup, "for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; read");
    until("a fork is refused", || {
        let events = group.read(Controller::Pids, "pids.events", "pids.events");
        events.lines().any(|line| line.strip_prefix("max ").is_some_and(|count| count != "0"))
    });
    assert_eq!(cgroup.usage(Figures::Current).unwrap().pids, Some(5));
}

fn refused_with_a_reason(_: &mut Sandbox) {
    let group = Group::new();
    let none = Limits::default;
    let mut cases = vec![
        (Limits { memory: Some(4096), ..none() }, "memory.limit", "too small"),
        (Limits { cpu_set: Some("5000-5001".to_owned()), ..none() }, "cpu.set", "exist"),
        (Limits { cpu_share: Some(0), ..none() }, "cpu.share", "1 to 10000"),
    ];
    if !group.cgroup.layout().is_pure_v2().expect("the hierarchies") {
        cases.push((
            Limits { swap: Some(4096), ..none() },
            "memory.swap",
            "memory.limit has to be set as well",
        ));
    }
    for (limits, key, why) in cases {
        let before = limits.check_host(group.cgroup.layout()).unwrap_err().to_string();
        assert!(before.contains(key), "{before}");
        let error = group.try_create(&limits).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. } | Error::Unsupported { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(key) && text.contains(why), "{text}");
        assert!(!group.v2("g").exists() && group.v1_dirs().is_empty(), "nothing is left: {text}");
    }
}

fn given_to_a_running_guest(_: &mut Sandbox) {
    let group = Group::new();
    let cgroup = group.create(&Limits::default());
    // Twenty processes that only fork.
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
    let pure_v2 = group.cgroup.layout().is_pure_v2().expect("the hierarchies");
    if !pure_v2 {
        assert_eq!(text.lines().filter(|line| line.ends_with(&here)).count(), 2, "{text}");
    }
    cgroup.set_limits(&Limits::default()).unwrap();
    // Where that costs no time, each guest has a limit.
    let usual = if pure_v2 { "4096" } else { "max" };
    assert_eq!(group.read(Controller::Pids, "pids.max", "pids.max"), usual);
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

fn memory_below_usage(_: &mut Sandbox) {
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
        worker.resume();
        assert_eq!(worker.line(), "still here");
        assert_eq!(cgroup.oom_kills().unwrap(), 0);
        cgroup.set_limits(&Limits { memory: Some(256 << 20), ..Limits::default() }).unwrap();
    }
}
