//! Parsers and tables, from text.

use std::path::Path;

use super::layout::Controller::{self, Cpu, Cpuset, Memory, Pids};
use super::limits::parse_list;
use super::usage::{field, parse_cap};
use super::{Error, Layout, Limits};

/// A hybrid host with each v1 controller alone.
const HYBRID_ALONE: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

/// Debian booted with `systemd.unified_cgroup_hierarchy=0`: cpu and cpuacct share a hierarchy.
const HYBRID_SYSTEMD: &str = "\
24 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
27 21 0:23 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:9 - tmpfs tmpfs ro,mode=755
28 27 0:24 / /sys/fs/cgroup/unified rw,nosuid,nodev,noexec,relatime shared:10 - cgroup2 cgroup2 rw
29 27 0:25 / /sys/fs/cgroup/systemd rw,nosuid,nodev,noexec,relatime shared:11 - cgroup cgroup rw,xattr,name=systemd
33 27 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid,nodev,noexec,relatime shared:15 - cgroup cgroup rw,cpu,cpuacct
34 27 0:30 / /sys/fs/cgroup/memory rw,nosuid,nodev,noexec,relatime shared:16 - cgroup cgroup rw,memory
35 27 0:31 / /sys/fs/cgroup/pids rw,nosuid,nodev,noexec,relatime shared:17 - cgroup cgroup rw,pids
";

/// Debian 12 and 13 as installed, with a container engine's bind of a part of the tree mounted
/// earlier.
const PURE: &str = "\
20 1 0:26 /machine.slice /srv/my\\040guest/cgroup rw - cgroup2 cgroup2 rw
24 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,discard
30 22 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
31 22 0:27 / /sys/fs/pstore rw,nosuid,nodev,noexec,relatime shared:10 - pstore pstore rw
";

fn layout(mountinfo: &str, controllers: &str) -> Layout {
    let mut layout = Layout::parse(mountinfo).unwrap();
    layout.set_controllers(controllers);
    layout
}

fn places(layout: &Layout) -> Vec<Option<&Path>> {
    Controller::ALL.into_iter().map(|controller| layout.hierarchy_of(controller).unwrap()).collect()
}

#[test]
fn hybrid_with_each_controller_alone() {
    let layout = layout(HYBRID_ALONE, "hugetlb\n");
    assert!(!layout.is_pure_v2().unwrap());
    assert_eq!(layout.v2_root(), Path::new("/sys/fs/cgroup/unified"));
    let expected =
        ["cpu", "cpuset", "memory", "pids"].map(|name| Path::new("/sys/fs/cgroup").join(name));
    assert_eq!(
        places(&layout),
        expected.iter().map(|path| Some(path.as_path())).collect::<Vec<_>>()
    );
    assert_eq!(layout.v1_roots().unwrap().len(), 4);
}

#[test]
fn hybrid_as_systemd_mounts_it() {
    let layout = layout(HYBRID_SYSTEMD, "");
    assert!(!layout.is_pure_v2().unwrap());
    assert_eq!(layout.hierarchy_of(Cpu).unwrap(), Some(Path::new("/sys/fs/cgroup/cpu,cpuacct")));
    assert_eq!(layout.hierarchy_of(Cpuset).unwrap(), None);
    assert_eq!(layout.hierarchy_of(Memory).unwrap(), Some(Path::new("/sys/fs/cgroup/memory")));
}

#[test]
fn pure_v2() {
    let layout = layout(PURE, "cpuset cpu io memory hugetlb pids rdma misc dmem\n");
    assert!(layout.is_pure_v2().unwrap());
    assert_eq!(places(&layout), vec![Some(Path::new("/sys/fs/cgroup")); 4]);
    assert_eq!(layout.v2_common().collect::<Vec<_>>(), [Cpu, Memory, Pids]);
    assert!(layout.v1_roots().unwrap().is_empty());
}

#[test]
fn v2_with_a_controller_disabled() {
    let layout = layout(PURE, "cpuset cpu io pids\n");
    assert_eq!(layout.hierarchy_of(Memory).unwrap(), None);
    let error =
        Limits { memory: Some(1 << 30), ..Limits::default() }.v1_wanted(&layout).unwrap_err();
    assert!(matches!(error, Error::Unsupported { key: "memory.limit", .. }), "{error}");
    assert!(error.to_string().contains("cgroup_disable="), "{error}");
}

#[test]
fn escaped_mount_point() {
    let only_bind: String = PURE.lines().take(1).collect();
    assert_eq!(Layout::parse(&only_bind).unwrap().v2_root(), Path::new("/srv/my guest/cgroup"));
}

#[test]
fn no_v2_at_all() {
    let without: Vec<_> = HYBRID_ALONE.lines().filter(|line| !line.contains("cgroup2")).collect();
    let without = without.join("\n");
    assert!(matches!(Layout::parse(&without), Err(Error::NoV2)));
    assert!(matches!(Layout::parse("garbage\n\n - \n1 2 3\n"), Err(Error::NoV2)));
}

fn full() -> Limits {
    Limits {
        cpu_share: Some(300),
        cpu_cap: Some(1.5),
        cpu_set: Some("0-1,3".to_owned()),
        memory: Some(512 << 20),
        swap: Some(1 << 30),
        pids: Some(200),
    }
}

fn written(settings: &[super::limits::Setting]) -> Vec<(&'static str, &str)> {
    settings.iter().filter_map(|setting| Some((setting.file, setting.value.as_deref()?))).collect()
}

#[test]
fn v2_values() {
    let settings = full().v2();
    let expected = [
        ("cpu.weight", "300"),
        ("cpu.max", "150000 100000"),
        ("cpuset.cpus", "0-1,3"),
        ("memory.swap.max", "1073741824"),
        ("memory.max", "536870912"),
        ("pids.max", "200"),
    ];
    assert_eq!(written(&settings), expected);
    assert_eq!(written(&Limits::default().v2()), [("pids.max", "4096")]);
}

#[test]
fn v1_values() {
    let settings = full().v1();
    let expected = [
        ("cpu.shares", "3072"),
        ("cpu.cfs_quota_us", "150000"),
        ("cpuset.cpus", "0-1,3"),
        ("memory.limit_in_bytes", "536870912"),
        ("memory.kmem.tcp.limit_in_bytes", "536870912"),
        ("memory.memsw.limit_in_bytes", "1610612736"),
        ("pids.max", "200"),
    ];
    assert_eq!(written(&settings), expected);
    assert_eq!(Limits { swap: Some(0), ..full() }.v1()[5].value.as_deref(), Some("536870912"));
    let smallest = Limits { cpu_share: Some(1), ..Limits::default() };
    assert_eq!(written(&smallest.v1()), [("cpu.shares", "10")]);
}

#[test]
fn v1_swap_needs_memory() {
    let limits = Limits { memory: None, ..full() };
    let error = limits.v1_wanted(&layout(HYBRID_ALONE, "")).unwrap_err();
    assert!(matches!(error, Error::Unsupported { key: "memory.swap", .. }), "{error}");
    assert!(limits.v1_wanted(&layout(PURE, "cpu cpuset memory pids")).unwrap().is_empty());
}

#[test]
fn only_wanted_controllers_on_v1() {
    let layout = layout(HYBRID_ALONE, "");
    let limits = Limits { pids: Some(9), ..Limits::default() };
    assert_eq!(written(&limits.v1_wanted(&layout).unwrap()), [("pids.max", "9")]);
    assert!(Limits::default().v1_wanted(&layout).unwrap().is_empty());
}

#[test]
fn senseless_values() {
    let none = Limits::default;
    let cases = [
        (Limits { cpu_share: Some(0), ..none() }, "cpu.share"),
        (Limits { cpu_share: Some(10_001), ..none() }, "cpu.share"),
        (Limits { cpu_cap: Some(0.0), ..none() }, "cpu.cap"),
        (Limits { cpu_cap: Some(-1.0), ..none() }, "cpu.cap"),
        (Limits { cpu_cap: Some(f64::NAN), ..none() }, "cpu.cap"),
        (Limits { cpu_cap: Some(f64::INFINITY), ..none() }, "cpu.cap"),
        (Limits { cpu_set: Some(String::new()), ..none() }, "cpu.set"),
        (Limits { cpu_set: Some("3-1".to_owned()), ..none() }, "cpu.set"),
        (Limits { cpu_set: Some("0-99999999".to_owned()), ..none() }, "cpu.set"),
        (Limits { pids: Some(0), ..none() }, "pids.limit"),
    ];
    for (limits, key) in cases {
        match limits.check() {
            Err(Error::Invalid { key: wrong, .. }) => assert_eq!(wrong, key),
            other => panic!("{limits:?}: {other:?}"),
        }
    }
    full().check().unwrap();
    Limits { cpu_cap: Some(0.01), ..none() }.check().unwrap();
}

#[test]
fn cpu_lists() {
    assert_eq!(parse_list("0-2,1,7").unwrap(), [0, 1, 2, 7]);
    assert_eq!(parse_list(" 0 , 3-3").unwrap(), [0, 3]);
    for wrong in ["", ",", "a", "0-", "-1", "1,,2", "1-2-3"] {
        assert!(parse_list(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn fields_of_flat_keyed_files() {
    let events = "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n";
    assert_eq!(field(events, "oom_kill"), Some(2));
    assert_eq!(field(events, "oom"), Some(3));
    assert_eq!(field(events, "oom_k"), None);
    assert_eq!(field("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n", "oom_kill"), Some(7));
    assert_eq!(field("", "populated"), None);
}

#[test]
fn caps_on_cpu_time() {
    assert_eq!(parse_cap("150000 100000\n"), Some(1.5));
    for none in ["max 100000\n", "-1 100000", "100000 0", ""] {
        assert_eq!(parse_cap(none), None, "{none}");
    }
}
