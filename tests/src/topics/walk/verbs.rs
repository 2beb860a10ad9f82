//! The verbs that are walked over.

use super::strace::Traced;
use super::verb::{Guest, Verb, walk};
use crate::host::free_port;
use crate::options::Lane;
use crate::sandbox::Sandbox;
use crate::source::system;
use crate::test::{Test, test};
use crate::topics::net::topology::Topology;

/// In the machines those of these that are most unlike each other are enough.
const VM: (&[Lane], &str) = (&[Lane::Vm], "each fault takes many seconds there");

/// A native guest's address is added to `lo` while it runs. No other walk has the same.
const fn native(address: &str) -> [&str; 8] {
    ["--net", "native", "--set", "net.interface=lo", "--set", address, "--set", "net.names=true"]
}

/// One that shares its address, and whose connections are recorded.
fn sharing(address: &str) -> Vec<&str> {
    let more = ["--set", "net.share-address=true", "--set", "net.flows=true"];
    [&native(address)[..], &more].concat()
}

pub const TESTS: &[Test] = &[
    test!(access_kill).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(access_set).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(access_start).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(base_remove).slow_in(VM.0, VM.1),
    test!(create).bases(&["busybox"]),
    test!(df).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(exec).bases(&["busybox"]),
    test!(exec_child).bases(&["busybox"]),
    test!(flows).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(flows_start).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(freeze).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(fsck).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(gc).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(import),
    test!(importer),
    test!(kill).bases(&["busybox"]),
    test!(lan_kill).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(lan_start).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(launch).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(launch_launcher).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(list).bases(&["busybox"]),
    test!(monitors_end).bases(&["busybox"]),
    test!(native_kill).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(native_monitors_end).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(native_set).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(native_start).bases(&["busybox"]),
    test!(native_start_launcher).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(published_kill).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(published_monitors_end).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(published_start).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(published_start_init).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(published_start_launcher).bases(&["busybox"]),
    test!(published_stop).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(rebuild).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(release).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(remove).bases(&["busybox"]),
    test!(remove_running).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(rename).bases(&["busybox"]),
    test!(restart).bases(&["busybox"]),
    test!(restart_init).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(restart_launcher).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(run).bases(&["busybox"]),
    test!(run_init).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(run_keep).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(set_running).bases(&["busybox"]),
    test!(set_stopped).bases(&["busybox"]),
    test!(shaped_kill).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(shaped_set).bases(&["busybox"]),
    test!(shaped_start).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(start).bases(&["busybox"]),
    test!(start_all).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(start_init).bases(&["busybox"]),
    test!(start_with_new_volume).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(start_launcher).bases(&["busybox"]),
    test!(stat).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(stop).bases(&["busybox"]),
    test!(thaw).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(unify),
    test!(unify_switch),
    test!(unset_running).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(unset_stopped).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(volume_create).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(volume_set).bases(&["busybox"]).slow_in(VM.0, VM.1),
    test!(volume_remove).bases(&["busybox"]).slow_in(VM.0, VM.1),
];

const CREATE: &[&str] = &["create", "box", "--base", "busybox", "--", "sleep", "100000"];
const LAUNCH: &[&str] = &["launch", "box", "--base", "busybox", "--", "sleep", "100000"];
const UNIFY: &[&str] = &["unify", "box", "--min-age", "0"];
const RUN: &[&str] = &["run", "--name", "box", "--base", "busybox", "--", "true"];
const KEEP: &[&str] = &["run", "--keep", "--name", "box", "--base", "busybox", "--", "true"];

/// A private guest with rules for its connections.
const DENY: &[&str] = &["--set", "net.deny=out:tcp:25", "--set", "net.allow=out:tcp:25@192.0.2.7"];

fn access_kill(sandbox: &mut Sandbox) {
    let verb = Verb::new(&["kill", "box"], Guest::Running);
    walk(sandbox, &Verb { settings: DENY, ..verb });
}

fn access_set(sandbox: &mut Sandbox) {
    let verb = Verb::harmless(&["set", "box", "net.deny=out:tcp:25,in:tcp:22"]);
    walk(sandbox, &Verb { settings: DENY, ..verb });
}

fn access_start(sandbox: &mut Sandbox) {
    let verb = Verb::new(&["start", "box"], Guest::Stopped);
    walk(sandbox, &Verb { settings: DENY, ..verb });
}

fn base_remove(sandbox: &mut Sandbox) {
    walk_import(sandbox, |import| Verb {
        import: Some(import),
        ..Verb::new(&["base", "rm", "other"], Guest::Absent)
    });
}

fn create(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(CREATE, Guest::Absent));
}

fn df(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::harmless(&["df"]));
}

fn exec(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::harmless(&["exec", "box", "true"]));
}

fn exec_child(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::harmless(&["exec", "box", "true"]).of(Traced::ExecChild));
}

fn flows(sandbox: &mut Sandbox) {
    walk_recorded(sandbox, &Verb::harmless(&["flows"]));
}

fn flows_start(sandbox: &mut Sandbox) {
    walk_recorded(sandbox, &Verb::new(&["start", "box"], Guest::Stopped));
}

/// On a host of its own: the rule for the guest's connections stays there (decision 0038).
fn walk_recorded(sandbox: &mut Sandbox, verb: &Verb<'_>) {
    let settings = &["--set", "net.flows=true"];
    Topology::new().host.with(|| walk(sandbox, &Verb { settings, ..*verb }));
}

fn freeze(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::harmless(&["freeze", "box"]));
}

fn fsck(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::harmless(&["fsck"]));
}

fn gc(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::harmless(&["gc"]));
}

fn import(sandbox: &mut Sandbox) {
    walk_import(sandbox, |import| Verb {
        import: Some(import),
        ..Verb::new(import, Guest::Absent)
    });
}

fn importer(sandbox: &mut Sandbox) {
    walk_import(sandbox, |import| Verb {
        import: Some(import),
        ..Verb::new(import, Guest::Absent).of(Traced::Importer)
    });
}

fn kill(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["kill", "box"], Guest::Running));
}

/// Walks over a verb of a guest with a port of a bridge, on a host of its own.
fn walk_lan(sandbox: &mut Sandbox, verb: &Verb<'_>) {
    let topology = Topology::new();
    topology.host.sh("ip link add br0 type bridge; ip link set br0 up");
    let settings = &["--set", "net.lan=bridge:br0@198.18.8.7/24"];
    topology.host.with(|| walk(sandbox, &Verb { settings, ..*verb }));
    // It ends with the guest's network namespace, which the kernel removes later.
    sandbox.wait_for("the bridge without ports", || {
        topology.host.sh("ip -o link show master br0").is_empty().then_some(())
    });
}

fn lan_kill(sandbox: &mut Sandbox) {
    walk_lan(sandbox, &Verb::new(&["kill", "box"], Guest::Running));
}

fn lan_start(sandbox: &mut Sandbox) {
    walk_lan(sandbox, &Verb::new(&["start", "box"], Guest::Stopped));
}

fn launch(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(LAUNCH, Guest::Absent));
}

fn launch_launcher(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(LAUNCH, Guest::Absent).of(Traced::Launcher));
}

fn list(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::harmless(&["ls"]));
}

fn monitors_end(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&[], Guest::Running).of(Traced::Monitor));
}

fn native_kill(sandbox: &mut Sandbox) {
    let settings = &native("net.address=198.18.7.1");
    walk(sandbox, &Verb { settings, ..Verb::new(&["kill", "box"], Guest::Running) });
}

fn native_monitors_end(sandbox: &mut Sandbox) {
    let settings = &sharing("net.address=198.18.7.2");
    let monitor = Verb::new(&[], Guest::Running).of(Traced::Monitor);
    walk(sandbox, &Verb { settings, ..monitor });
}

fn native_set(sandbox: &mut Sandbox) {
    let settings = &native("net.address=198.18.7.3,198.18.7.4");
    let set = ["set", "box", "net.address=198.18.7.3,198.18.7.5"];
    walk(sandbox, &Verb { settings, ..Verb::new(&set, Guest::Running) });
}

fn native_start(sandbox: &mut Sandbox) {
    let settings = &sharing("net.address=198.18.7.6");
    walk(sandbox, &Verb { settings, ..Verb::new(&["start", "box"], Guest::Stopped) });
}

fn native_start_launcher(sandbox: &mut Sandbox) {
    let settings = &native("net.address=198.18.7.7");
    let launcher = Verb::new(&["start", "box"], Guest::Stopped).of(Traced::Launcher);
    walk(sandbox, &Verb { settings, ..launcher });
}

/// Walks over a verb of a guest with a rate, on a host of its own.
fn walk_shaped(sandbox: &mut Sandbox, verb: &Verb<'_>) {
    let topology = Topology::new();
    std::fs::write(sandbox.root().join("uplink.toml"), "rate = \"10M\"\n").unwrap();
    topology.host.with(|| walk(sandbox, verb));
    let left = topology.host.sh("tc qdisc show dev up0");
    assert!(!left.contains("htb"), "{left}");
}

fn shaped_kill(sandbox: &mut Sandbox) {
    let settings = &["--set", "net.reserve=2M"];
    walk_shaped(sandbox, &Verb { settings, ..Verb::new(&["kill", "box"], Guest::Running) });
}

fn shaped_set(sandbox: &mut Sandbox) {
    let set = ["set", "box", "net.cap=2M"];
    walk_shaped(sandbox, &Verb::new(&set, Guest::Running));
}

fn shaped_start(sandbox: &mut Sandbox) {
    let settings = &["--set", "net.reserve=2M", "--set", "net.cap=3M"];
    walk_shaped(sandbox, &Verb { settings, ..Verb::new(&["start", "box"], Guest::Stopped) });
}

fn published_kill(sandbox: &mut Sandbox) {
    walk_published(sandbox, &Verb::new(&["kill", "box"], Guest::Running));
}

fn published_monitors_end(sandbox: &mut Sandbox) {
    walk_published(sandbox, &Verb::new(&[], Guest::Running).of(Traced::Monitor));
}

fn published_start(sandbox: &mut Sandbox) {
    walk_published(sandbox, &Verb::new(&["start", "box"], Guest::Stopped));
}

fn published_start_init(sandbox: &mut Sandbox) {
    walk_published(sandbox, &Verb::new(&["start", "box"], Guest::Stopped).of(Traced::Init));
}

fn published_start_launcher(sandbox: &mut Sandbox) {
    walk_published(sandbox, &Verb::new(&["start", "box"], Guest::Stopped).of(Traced::Launcher));
}

fn published_stop(sandbox: &mut Sandbox) {
    walk_published(sandbox, &Verb::new(&["stop", "box"], Guest::Running));
}

fn rebuild(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["rebuild", "box"], Guest::Stopped));
}

/// What is copied is copied by another process: the faults hit this one.
fn start_with_new_volume(sandbox: &mut Sandbox) {
    let start = Verb::new(&["start", "box"], Guest::Stopped);
    walk(sandbox, &Verb { settings: &["-v", "data:/etc"], ..start });
}

fn volume_create(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["volume", "create", "data"], Guest::Absent));
}

/// A limit as such needs project quota.
fn volume_set(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["volume", "set", "data", "--size", "none"], Guest::Absent));
}

fn volume_remove(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["volume", "rm", "data"], Guest::Absent));
}

fn release(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["release"], Guest::Stopped));
}

fn remove(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["rm", "box"], Guest::Stopped));
}

fn remove_running(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["rm", "--force", "box"], Guest::Running));
}

fn rename(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["rename", "box", "other"], Guest::Stopped));
}

fn restart(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["restart", "box"], Guest::Running));
}

fn restart_init(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["restart", "box"], Guest::Running).of(Traced::Init));
}

fn restart_launcher(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["restart", "box"], Guest::Running).of(Traced::Launcher));
}

fn run(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(RUN, Guest::Absent));
}

fn run_init(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(RUN, Guest::Absent).of(Traced::Init));
}

fn run_keep(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(KEEP, Guest::Absent));
}

fn set_running(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::harmless(&["set", "box", "memory.limit=64M"]));
}

fn set_stopped(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["set", "box", "memory.limit=64M"], Guest::Stopped));
}

fn start(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["start", "box"], Guest::Stopped));
}

fn start_all(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb { two: true, ..Verb::new(&["start", "--all"], Guest::Stopped) });
}

fn start_init(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["start", "box"], Guest::Stopped).of(Traced::Init));
}

fn start_launcher(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["start", "box"], Guest::Stopped).of(Traced::Launcher));
}

fn stat(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::harmless(&["stat"]));
}

fn stop(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb::new(&["stop", "box"], Guest::Running));
}

fn thaw(sandbox: &mut Sandbox) {
    walk(sandbox, &Verb { guest: Guest::Frozen, ..Verb::harmless(&["thaw", "box"]) });
}

fn unify(sandbox: &mut Sandbox) {
    walk_unify(sandbox, &Verb::new(UNIFY, Guest::Stopped));
}

/// The last holm-import of the command, which gives the guest its new layer.
fn unify_switch(sandbox: &mut Sandbox) {
    walk_unify(sandbox, &Verb::new(UNIFY, Guest::Stopped).of(Traced::Importer));
}

fn unset_running(sandbox: &mut Sandbox) {
    let settings = &["--memory", "64M"];
    walk(sandbox, &Verb { settings, ..Verb::harmless(&["unset", "box", "memory.limit"]) });
}

fn unset_stopped(sandbox: &mut Sandbox) {
    let settings = &["--memory", "64M"];
    let verb = Verb::new(&["unset", "box", "memory.limit"], Guest::Stopped);
    walk(sandbox, &Verb { settings, ..verb });
}

/// Walks over a verb that imports base `other`, or finds it.
fn walk_import(sandbox: &mut Sandbox, verb: for<'a> fn(&'a [&'a str]) -> Verb<'a>) {
    let source = system(sandbox, |dir| {
        std::fs::write(dir.join("etc/hostname"), "other\n").expect("a file");
        std::fs::create_dir_all(dir.join("usr/share")).expect("a directory");
        std::fs::hard_link(dir.join("etc/hostname"), dir.join("etc/same")).expect("a link");
    });
    walk(sandbox, &verb(&["base", "import", "other", &source]));
}

/// Walks over a verb that makes objects, in a store of its own.
fn walk_unify(sandbox: &mut Sandbox, verb: &Verb) {
    let source = system(sandbox, |dir| {
        std::os::unix::fs::symlink("busybox", dir.join("bin/cat")).expect("a link");
    });
    sandbox.holm(&["base", "import", "busybox", &source]).ok();
    walk(sandbox, &Verb { files: true, ..*verb });
}

/// Walks over a verb whose guest publishes ports.
fn walk_published(sandbox: &mut Sandbox, verb: &Verb) {
    let (first, second) = (format!("{}:80", free_port()), format!("{}:53/udp", free_port()));
    walk(sandbox, &Verb { settings: &["-p", &first, "-p", &second], ..*verb });
}
