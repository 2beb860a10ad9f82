//! Volumes with a size limit, by project quota.

use std::fs;

use holm_sys::project::Usage;

use super::filesystem::{Kind, fails, fill, launch, number, on, usage};
use crate::guest::exec;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(limited_on_ext4),
    test!(limited_on_xfs),
    test!(one_with_files_gets_a_limit_on_ext4),
    test!(one_with_files_gets_a_limit_on_xfs),
    test!(without_quota_it_is_said),
];

/// The project id of the first volume of the root.
fn first(sandbox: &Sandbox) -> u32 {
    (sandbox.instance().expect("an instance number") << 26) + 1
}

/// How many KiB the volume has, as statfs(2) says inside. busybox's `df` looks at another mount of
/// the same filesystem.
fn shown(sandbox: &Sandbox, name: &str) -> u64 {
    let script = "set -- $(busybox stat -f -c '%b %S' /data); echo $(($1 * $2 / 1024))";
    number(sandbox, name, script)
}

fn limited_on_ext4(sandbox: &mut Sandbox) {
    on(Kind::Ext4, sandbox, limited);
}

fn limited_on_xfs(sandbox: &mut Sandbox) {
    on(Kind::Xfs, sandbox, limited);
}

fn limited(sandbox: &Sandbox) {
    sandbox.holm(&["volume", "create", "other", "--size", "32M"]).ok();
    launch(sandbox, "box", &["volumes=data:/data:32M", "disk.size=32M"]);
    launch(sandbox, "neighbour", &[r#"volumes=["data:/data", "other:/other", "free:/free"]"#]);
    assert_eq!(shown(sandbox, "box"), 32 << 10);
    assert!((20..=32).contains(&fill(sandbox, "box", "/data/big")));
    // It is full for all that have it, and nothing else is.
    fails(sandbox, "neighbour", "dd if=/dev/zero of=/data/more bs=1M count=8");
    for file in ["/other/a", "/free/a", "/a"] {
        exec(sandbox, "neighbour", &format!("dd if=/dev/zero of={file} bs=1M count=16")).ok();
    }
    exec(sandbox, "box", "dd if=/dev/zero of=/a bs=1M count=16").ok();
    // More, while they run; the limit of volume.toml is what counts from then on.
    sandbox.holm(&["volume", "set", "data", "--size", "48M"]).ok();
    assert_eq!(shown(sandbox, "neighbour"), 48 << 10);
    assert!((36..=48).contains(&fill(sandbox, "box", "/data/big")));
    sandbox.holm(&["restart", "box"]).ok();
    assert_eq!(shown(sandbox, "box"), 48 << 10);
    let printed = sandbox.holm(&["volume", "inspect", "data", "--json"]).ok().json();
    assert_eq!(printed["limit_bytes"], 48 << 20, "{printed}");
    sandbox.holm(&["volume", "set", "data", "--size", "none"]).ok();
    assert!(shown(sandbox, "box") > 400 << 10);
    exec(sandbox, "box", "dd if=/dev/zero of=/data/more bs=1M count=64").ok();
    sandbox.holm(&["rm", "--force", "--volumes", "box", "neighbour"]).ok();
    assert_eq!(sandbox.holm(&["volume", "ls", "-q"]).ok().stdout, "");
    for id in [first(sandbox), first(sandbox) + 1] {
        sandbox.wait_for("nothing is charged", || {
            (usage(sandbox.root(), id) == Usage::default()).then_some(())
        });
    }
}

fn one_with_files_gets_a_limit_on_ext4(sandbox: &mut Sandbox) {
    on(Kind::Ext4, sandbox, one_with_files_gets_a_limit);
}

fn one_with_files_gets_a_limit_on_xfs(sandbox: &mut Sandbox) {
    on(Kind::Xfs, sandbox, one_with_files_gets_a_limit);
}

fn one_with_files_gets_a_limit(sandbox: &Sandbox) {
    launch(sandbox, "box", &["volumes=data:/data"]);
    exec(sandbox, "box", "dd if=/dev/zero of=/data/a bs=1M count=16; ln -s a /data/b").ok();
    let set = ["volume", "set", "data", "--size", "24M"];
    sandbox.holm(&set).refused(&["data is in use by guest box", "holm stop box"]);
    sandbox.holm(&["stop", "box"]).ok();
    sandbox.holm(&set).ok();
    sandbox.holm(&["start", "box"]).ok();
    assert_eq!(shown(sandbox, "box"), 24 << 10);
    assert!((4..=8).contains(&fill(sandbox, "box", "/data/big")), "what was there counts");
    exec(sandbox, "box", "mv /data/b /data/c && [ -L /data/c ] && rm /data/a /data/big").ok();
    assert!((20..=24).contains(&fill(sandbox, "box", "/data/big")));
    sandbox.holm(&["rm", "--force", "--volumes", "box"]).ok();
}

fn without_quota_it_is_said(sandbox: &mut Sandbox) {
    on(Kind::Plain, sandbox, |sandbox| {
        sandbox.holm(&["volume", "create", "data"]).ok();
        let toml = sandbox.root().join("volumes/data/volume.toml");
        let before = fs::read_to_string(&toml).expect("volume.toml");
        let refused = ["data: a size limit needs project quota", "holm doctor quota"];
        sandbox.holm(&["volume", "set", "data", "--size", "24M"]).refused(&refused);
        assert_eq!(fs::read_to_string(&toml).expect("volume.toml"), before);
        sandbox.holm(&["volume", "set", "data", "--size", "none"]).ok();
        sandbox.holm(&["volume", "set", "none", "--size", "1M"]).refused(&["no volume none"]);
        let usage = sandbox.holm(&["volume", "set", "data", "--size", "much"]);
        assert!(usage.code() == 2 && usage.stderr.contains("\"much\" is not a size"), "{usage}");
        sandbox.holm(&["volume", "rm", "data"]).ok();
    });
}
