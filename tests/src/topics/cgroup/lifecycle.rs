//! A guest's cgroups are made, frozen, killed and removed, with whatever a hostile guest leaves in
//! them.

use super::group::{Group, OWNER, SOON, Worker, until};
use crate::sandbox::{Sandbox, skip};
use crate::test::{Test, test};
use holm::cgroup::{Error, Figures, GuestCgroup, Limits};
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Test] = &[
    test!(delegated_to_the_guest_only_below),
    test!(processes_in_the_top_cgroup_are_told).bases(&["busybox"]),
    test!(created_twice_at_once),
    test!(created_again),
    test!(huge_pages_are_refused_after_a_killed_start_too),
    test!(frozen_and_thawed),
    test!(killed_while_forking_and_frozen),
    test!(removed_while_it_is_waited_for),
    test!(garbage_removed),
    test!(bounded_in_number_and_depth),
    test!(threaded_leaf),
    test!(leaf_comes_back),
    test!(the_run_record_is_kept),
    test!(listed),
];

fn delegated_to_the_guest_only_below(_: &mut Sandbox) {
    let group = Group::new();
    let cgroup = group.create(&Limits::default());
    let owner = |path: &str| fs::metadata(group.v2(path)).map(|meta| (meta.uid(), meta.gid()));
    for path in [
        "g/guest",
        "g/guest/cgroup.procs",
        "g/guest/cgroup.subtree_control",
        "g/guest/cgroup.threads",
    ] {
        assert_eq!(owner(path).unwrap(), OWNER, "{path}");
    }
    for path in [
        "g",
        "g/cgroup.procs",
        "g/cgroup.max.descendants",
        "g/guest/cgroup.max.descendants",
        "g/guest/cgroup.type",
    ] {
        assert_eq!(owner(path).unwrap(), (0, 0), "{path}");
    }
    if group.cgroup.layout().is_pure_v2().expect("the hierarchies") {
        let controllers = fs::read_to_string(group.v2("g/guest/cgroup.controllers")).unwrap();
        let has: Vec<_> = controllers.split_whitespace().collect();
        for controller in ["cpu", "memory", "pids"] {
            assert!(has.contains(&controller), "{controllers}");
        }
        assert_eq!(owner("g/guest/memory.max").unwrap(), (0, 0));
    }
    assert!(group.v1_dirs().is_empty(), "no limit, no v1 cgroup");
    cgroup.remove().unwrap();
    assert!(GuestCgroup::open(&group.cgroup, "g").unwrap().is_none());
}

/// On hybrid hosts nothing on v2 shows that a start was killed there.
fn huge_pages_are_refused_after_a_killed_start_too(_: &mut Sandbox) {
    let group = Group::new();
    if !group.cgroup.layout().is_pure_v2().expect("the hierarchies") {
        skip("huge pages are not refused on a hybrid host");
    }
    fs::create_dir(group.v2("")).expect("what the killed one made");
    group.create(&Limits { memory: Some(64 << 20), pids: Some(10), ..Limits::default() });
    for file in ["hugetlb.2MB.max", "hugetlb.2MB.rsvd.max"] {
        assert_eq!(fs::read_to_string(group.v2(file)).expect(file), "0\n", "{file}");
    }
}

/// As in a container without systemd, whose processes are in its top cgroup.
fn processes_in_the_top_cgroup_are_told(sandbox: &mut Sandbox) {
    let group = Group::new();
    if !group.cgroup.layout().is_pure_v2().expect("the hierarchies") {
        skip("no controller is enabled on v2 on a hybrid host");
    }
    let script = r#"mkdir "$TOP" && echo $$ > "$TOP/cgroup.procs" && unshare -mC sh -c \
        'mount -t cgroup2 top /sys/fs/cgroup && "$0" run --base busybox --net none -- true' "$0"
        status=$?; echo $$ > "$TOP/../cgroup.procs"; rmdir "$TOP"/*/; exit $status"#;
    let holm = sandbox.command();
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(holm.get_program()).env("TOP", group.v2(""));
    for (name, value) in holm.get_envs() {
        command.env(name, value.expect("a value"));
    }
    let message = ["cannot enable cgroup controllers in", "that cgroup contains processes itself"];
    sandbox.run(&mut command).refused(&message);
}

fn created_twice_at_once(_: &mut Sandbox) {
    let group = Group::new();
    let limits = Limits { memory: Some(64 << 20), pids: Some(10), ..Limits::default() };
    std::thread::scope(|scope| {
        let start = |number: u32| {
            let (group, limits) = (&group, &limits);
            scope.spawn(move || {
                GuestCgroup::create(&group.cgroup, &format!("g{number}"), limits, OWNER).map(drop)
            })
        };
        let starts: Vec<_> = (0..8).map(start).collect();
        for start in starts {
            start.join().unwrap().unwrap();
        }
    });
    assert_eq!(group.cgroup.guests().unwrap().len(), 8);
}

fn created_again(_: &mut Sandbox) {
    let group = Group::new();
    let limits = Limits { pids: Some(20), ..Limits::default() };
    drop(group.create(&limits));
    // A killed start left it; its limit must not be kept.
    let cgroup = group.create(&Limits::default());
    assert!(group.v1_dirs().is_empty());
    let mut worker = Worker::start(&cgroup, "read");
    let pid = worker.pid();
    match group.try_create(&limits) {
        Err(Error::Populated { pids, .. }) => assert_eq!(pids, [pid]),
        other => panic!("{other:?}"),
    }
    assert!(worker.alive());
    assert!(matches!(cgroup.remove(), Err(Error::Populated { .. })));
}

fn frozen_and_thawed(_: &mut Sandbox) {
    let group = Group::new();
    let cgroup = group.create(&Limits::default());
    let mut worker = Worker::start(&cgroup, "while read; do echo done; done");
    worker.resume();
    assert_eq!(worker.line(), "done");
    cgroup.freeze(true).unwrap();
    let used = || cgroup.usage(Figures::All).unwrap().cpu_usec;
    let before = used();
    worker.resume();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(used(), before, "a frozen guest takes no time");
    cgroup.freeze(false).unwrap();
    assert_eq!(worker.line(), "done");
}

fn killed_while_forking_and_frozen(_: &mut Sandbox) {
    let group = Group::new();
    let cgroup = group.create(&Limits { pids: Some(100), ..Limits::default() });
    let _bomb = Worker::start(&cgroup, "bomb() { bomb | bomb & }; bomb; while :; do bomb; done");
    until("it forks", || cgroup.pids().unwrap().len() > 20);
    cgroup.freeze(true).unwrap();
    assert!(cgroup.populated().unwrap());
    assert!(matches!(cgroup.wait_empty(Duration::ZERO), Err(Error::Timeout { .. })));
    cgroup.kill().unwrap();
    cgroup.wait_empty(SOON).unwrap();
    assert!(!cgroup.populated().unwrap());
    assert_eq!(cgroup.pids().unwrap(), Vec::<i32>::new());
    cgroup.remove().unwrap();
    assert!(group.v1_dirs().is_empty());
}

/// The kernel sends no event for a cgroup that is removed within 10 ms of the last one.
fn removed_while_it_is_waited_for(_: &mut Sandbox) {
    let group = Group::new();
    for _ in 0..20 {
        let cgroup = group.create(&Limits::default());
        let same = GuestCgroup::open(&group.cgroup, "g").unwrap().unwrap();
        let worker = Worker::start(&cgroup, "read line");
        let (send, receive) = std::sync::mpsc::channel();
        let waiter = std::thread::spawn(move || {
            send.send(()).unwrap();
            same.wait_empty(Duration::from_hours(1))
        });
        receive.recv().unwrap();
        drop(worker); // killed and reaped
        cgroup.remove().unwrap();
        until("the one that waits sees that it is gone", || waiter.is_finished());
        waiter.join().unwrap().unwrap();
    }
}

fn garbage_removed(_: &mut Sandbox) {
    let group = Group::new();
    let cgroup = group.create(&Limits { memory: Some(256 << 20), ..Limits::default() });
    drop(cgroup.leaf_fd().unwrap());
    let guest = group.v2("g/guest");
    let mut deep = guest.clone();
    for level in 0..28 {
        deep.push(format!("level {level}"));
        fs::create_dir(&deep).unwrap();
    }
    for number in 0..300 {
        fs::create_dir(guest.join(format!("wide-{number}"))).unwrap();
    }
    for name in [&b"\xff\xfe"[..], b"-rf", b"...", b"a b\tc", &[b'x'; 255]] {
        fs::create_dir(guest.join(OsStr::from_bytes(name))).unwrap();
    }
    let mut worker = Worker::start(
        &cgroup,
        &format!("echo 0 >'{}/cgroup.procs'; echo moved; read", deep.display()),
    );
    assert_eq!(worker.line(), "moved");
    assert_eq!(cgroup.pids().unwrap(), [worker.pid()]);
    cgroup.kill().unwrap();
    cgroup.wait_empty(SOON).unwrap();
    cgroup.remove().unwrap();
    assert!(!group.v2("g").exists());
}

fn bounded_in_number_and_depth(_: &mut Sandbox) {
    let group = Group::new();
    let _cgroup = group.create(&Limits::default());
    let mut deep = group.v2("g/guest");
    let refused = (0..100).map(|level| {
        deep.push(level.to_string());
        fs::create_dir(&deep)
    });
    assert_eq!(refused.take_while(Result::is_ok).count(), 31, "depth");
    let guest = group.v2("g/guest");
    let made =
        (0..3000).take_while(|number| fs::create_dir(guest.join(format!("n{number}"))).is_ok());
    let made = made.count() + 31 + 1;
    assert_eq!(made, 1024, "number, `guest` included");
}

fn threaded_leaf(_: &mut Sandbox) {
    let group = Group::new();
    let cgroup = group.create(&Limits::default());
    let mut worker = Worker::start(&cgroup, "read");
    drop(cgroup.leaf_fd().unwrap());
    fs::write(group.v2("g/guest/.holm/cgroup.type"), "threaded").unwrap();
    assert_eq!(cgroup.pids().unwrap(), [worker.pid()]);
    assert!(worker.alive());
    cgroup.kill().unwrap();
    cgroup.wait_empty(SOON).unwrap();
    cgroup.remove().unwrap();
}

fn leaf_comes_back(_: &mut Sandbox) {
    let group = Group::new();
    let cgroup = group.create(&Limits::default());
    let path = |fd: &dyn AsFd| {
        fs::read_link(format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd()))
            .unwrap_or_else(|_| PathBuf::new())
    };
    drop(cgroup.leaf_fd().unwrap());
    fs::remove_dir(group.v2("g/guest/.holm")).unwrap();
    assert_eq!(path(&cgroup.leaf_fd().unwrap()), group.v2("g/guest/.holm"));
    let (one, two) = (cgroup.fresh_leaf_fd().unwrap(), cgroup.fresh_leaf_fd().unwrap());
    assert_ne!(path(&one), path(&two));
    drop((one, two));
    cgroup.remove().unwrap();
}

fn the_run_record_is_kept(_: &mut Sandbox) {
    let group = Group::new();
    let cgroup = group.create(&Limits::default());
    assert_eq!(cgroup.record().unwrap(), None);
    assert!(!cgroup.ready().unwrap());
    for size in [10, 4096, 20_000, 2] {
        let state: Vec<u8> = (0..size).map(|i: u32| u8::try_from(i % 251).unwrap()).collect();
        cgroup.set_record(&state).unwrap();
        let again = GuestCgroup::open(&group.cgroup, "g").unwrap().unwrap();
        assert_eq!(again.record().unwrap(), Some(state));
    }
    rustix::fs::fsetxattr(
        cgroup.dir_fd(),
        "trusted.holm.ready",
        b"1",
        rustix::fs::XattrFlags::empty(),
    )
    .unwrap();
    assert!(cgroup.ready().unwrap());
    cgroup.remove().unwrap();
    let fresh = group.create(&Limits::default());
    assert_eq!(fresh.record().unwrap(), None, "it dies with the guest");
}

fn listed(_: &mut Sandbox) {
    let group = Group::new();
    assert_eq!(group.cgroup.guests().unwrap(), Vec::<String>::new());
    drop(group.cgroup.monitors().unwrap());
    drop(group.cgroup.monitors().unwrap());
    for name in ["b", "a"] {
        GuestCgroup::create(&group.cgroup, name, &Limits::default(), OWNER).unwrap();
    }
    assert_eq!(group.cgroup.guests().unwrap(), ["a", "b"]);
}
