//! What `holm unify` says and does.

use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::Duration;

use crate::guest::exec;
use crate::sandbox::Sandbox;
use crate::source::system;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(equal_files_become_one),
    test!(a_dry_run_changes_nothing),
    test!(a_guest_that_shares_nothing_is_left_out),
    test!(a_running_guest_is_switched_at_its_next_start),
    test!(another_base_below_is_refused),
];

const MIB: u64 = 1 << 20;

/// Guests of one base, each with a file of its own and one of a mebibyte that all have.
fn guests(sandbox: &Sandbox, names: &[&str]) {
    let source = system(sandbox, |dir| {
        for name in ["cat", "dd"] {
            std::os::unix::fs::symlink("busybox", dir.join("bin").join(name)).expect("a link");
        }
    });
    sandbox.holm(&["base", "import", "box", &source]).ok();
    for name in names {
        let head = ["launch", name, "--base", "box", "--net", "none"];
        sandbox.holm(&[&head[..], &["--", "sleep", "100000"]].concat()).ok();
        let script = format!(
            "mkdir /srv; while :; do echo all the same; done | dd of=/srv/same bs=1M count=1 \
             iflag=fullblock 2>/dev/null; echo only in {name} and longer than sixty-four bytes, which \
             is what an image holds itself >/srv/own"
        );
        exec(sandbox, name, &script).ok();
    }
}

fn upper_bytes(sandbox: &Sandbox, name: &str) -> u64 {
    let file = sandbox.root().join("guests").join(name).join("disk/upper/srv/same");
    std::fs::symlink_metadata(file).map_or(0, |found| found.blocks() * 512)
}

fn settle() {
    thread::sleep(Duration::from_millis(150));
}

fn objects_of(sandbox: &Sandbox, bytes: u64) -> usize {
    let dirs = std::fs::read_dir(sandbox.root().join("objects")).expect("the store").flatten();
    dirs.filter(|dir| dir.path().is_dir())
        .flat_map(|dir| std::fs::read_dir(dir.path()).expect("a directory").flatten())
        .filter(|object| object.metadata().is_ok_and(|found| found.len() == bytes))
        .count()
}

fn equal_files_become_one(sandbox: &mut Sandbox) {
    guests(sandbox, &["a", "b"]);
    let body = exec(sandbox, "a", "cat /srv/same").ok().stdout;
    sandbox.holm(&["stop", "a", "b"]).ok();
    settle();
    let done = sandbox.holm(&["unify", "--all", "--min-age", "0", "--json"]).ok().json();
    for guest in done.as_array().expect("an array") {
        assert_eq!(guest["state"], "shared", "{guest}");
        assert_eq!(guest["files"], 1, "{guest}");
        assert!(guest["freed_bytes"].as_u64().expect("bytes") >= MIB, "{guest}");
    }
    assert_eq!((upper_bytes(sandbox, "a"), upper_bytes(sandbox, "b")), (0, 0));
    assert_eq!(objects_of(sandbox, MIB), 1);
    // A second one finds nothing to do.
    let again = sandbox.holm(&["unify", "--all", "--min-age", "0", "--json"]).ok().json();
    assert_eq!(again[0]["state"], "unchanged", "{again}");
    sandbox.holm(&["start", "a", "b"]).ok();
    assert_eq!(exec(sandbox, "a", "cat /srv/same").ok().stdout, body);
    exec(sandbox, "a", "cat /srv/own").ok().has("only in a");
    // A guest that writes to it gets its own.
    exec(sandbox, "a", "echo changed >>/srv/same").ok();
    assert_eq!(exec(sandbox, "b", "cat /srv/same").ok().stdout, body);
    exec(sandbox, "a", "cat /srv/same").ok().has("changed");
    sandbox.holm(&["rm", "--force", "a", "b"]).ok();
    // The next command on bases collects what nobody has any more.
    sandbox.holm(&["base", "ls"]).ok();
    assert_eq!(objects_of(sandbox, MIB), 0);
}

fn a_dry_run_changes_nothing(sandbox: &mut Sandbox) {
    guests(sandbox, &["a", "b"]);
    sandbox.holm(&["stop", "a", "b"]).ok();
    settle();
    let said = sandbox.holm(&["unify", "--all", "--min-age", "0", "--dry-run"]).ok();
    said.has("a: 1 file of 1.0M could be shared");
    assert_eq!((upper_bytes(sandbox, "a"), objects_of(sandbox, MIB)), (MIB, 0));
    // They have changed within the last hour.
    let said = sandbox.holm(&["unify", "--all"]).ok();
    said.has("a: nothing to share; ").has("changed lately");
    let excluded = ["unify", "--all", "--min-age", "0", "--exclude", "/srv/*"];
    sandbox.holm(&excluded).ok();
    assert_eq!(upper_bytes(sandbox, "a"), MIB);
    sandbox.holm(&["unify", "a", "--min-age", "0", "--min-size", "2M"]).ok();
    assert_eq!(upper_bytes(sandbox, "a"), MIB);
    sandbox
        .holm(&["unify", "--all", "--exclude", "[", "--min-age", "0"])
        .refused(&["`[`", "pattern"]);
    sandbox.holm(&["rm", "a", "b"]).ok();
}

fn a_guest_that_shares_nothing_is_left_out(sandbox: &mut Sandbox) {
    guests(sandbox, &["a", "b", "c"]);
    sandbox.holm(&["stop", "a", "b", "c"]).ok();
    sandbox.holm(&["set", "c", "share=false"]).ok();
    settle();
    sandbox.holm(&["unify", "c"]).refused(&["guest c", "holm set c share=true"]);
    sandbox.holm(&["set", "a", "share=false"]).ok();
    sandbox.holm(&["unify", "--all", "--min-age", "0"]).ok();
    // Only `b` is left, which has nothing in common with itself.
    assert_eq!(objects_of(sandbox, MIB), 0);
    sandbox.holm(&["set", "a", "share=true"]).ok();
    sandbox.holm(&["unify", "--all", "--min-age", "0"]).ok();
    let bytes = ["a", "b", "c"].map(|name| upper_bytes(sandbox, name));
    assert_eq!(bytes, [0, 0, MIB]);
    sandbox.holm(&["rm", "a", "b", "c"]).ok();
}

fn a_running_guest_is_switched_at_its_next_start(sandbox: &mut Sandbox) {
    guests(sandbox, &["a", "b"]);
    settle();
    let said = sandbox.holm(&["unify", "--all", "--min-age", "0"]).ok();
    said.has("a: 1 file of 1.0M to be shared at its next start");
    assert_eq!(upper_bytes(sandbox, "a"), MIB);
    // What has changed since stays the guest's own.
    exec(sandbox, "b", "echo changed >>/srv/same").ok();
    sandbox.holm(&["restart", "a", "b"]).ok();
    assert_eq!(upper_bytes(sandbox, "a"), 0);
    assert!(upper_bytes(sandbox, "b") > MIB);
    exec(sandbox, "b", "cat /srv/same").ok().has("changed");
    exec(sandbox, "a", "cat /srv/same").ok().has("all the same");
    sandbox.holm(&["rm", "--force", "a", "b"]).ok();
}

fn another_base_below_is_refused(sandbox: &mut Sandbox) {
    guests(sandbox, &["a", "b"]);
    let source = sandbox.root().join("source");
    sandbox.holm(&["base", "import", "other", &source.to_string_lossy()]).ok();
    sandbox.holm(&["stop", "a", "b"]).ok();
    settle();
    sandbox.holm(&["unify", "--all", "--min-age", "0"]).ok();
    sandbox.holm(&["set", "a", "base=other"]).ok();
    sandbox.holm(&["start", "a"]).refused(&["base box", "other", "set `base` back"]);
    sandbox.holm(&["set", "a", "base=box"]).ok();
    sandbox.holm(&["start", "a"]).ok();
    sandbox.holm(&["rm", "--force", "a", "b"]).ok();
}
