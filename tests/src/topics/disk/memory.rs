//! `disk.kind = "memory"`: a guest that forgets.

use super::filesystem::fails;
use crate::guest::{exec, launch_idle};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[test!(a_guest_that_forgets).bases(&["busybox"])];

fn a_guest_that_forgets(sandbox: &mut Sandbox) {
    let settings = ["--set", "disk.kind=memory", "--set", "disk.size=16M", "--set"];
    launch_idle(sandbox, "box", &[&settings[..], &["disk.inodes=400"]].concat());
    let df = exec(sandbox, "box", "df -k / | tail -n 1; df -i / | tail -n 1").ok().stdout;
    let second = |line: &str| line.split_whitespace().nth(1).map(str::to_owned);
    let sizes: Vec<_> = df.lines().filter_map(second).collect();
    assert_eq!(sizes, ["16384", "400"], "{df}");
    fails(sandbox, "box", "dd if=/dev/zero of=/big bs=1M count=20");
    let id = exec(sandbox, "box", "echo lost >/file; cat /etc/machine-id").ok().stdout;
    let set = sandbox.holm(&["set", "box", "disk.size=32M"]).ok();
    assert!(set.stdout.contains("at the next start: disk.size"), "{set}");
    sandbox.holm(&["restart", "box"]).ok();
    exec(sandbox, "box", "[ ! -e /file ] && [ ! -e /big ]").ok();
    assert_eq!(exec(sandbox, "box", "cat /etc/machine-id").ok().stdout, id, "its identity stays");
    let last = sandbox.holm(&["status", "box", "--json"]).ok().json();
    assert_eq!(last["last_run"]["outcome"], "exited", "{last}");
    sandbox.holm(&["set", "box", "disk.kind=overlay"]).refused(&["disk.kind is fixed"]);
    sandbox.holm(&["unify", "box"]).refused(&["in memory"]);
    sandbox.holm(&["rm", "--force", "box"]).ok();
}
