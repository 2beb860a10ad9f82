//! What a guest may write is bounded, and nobody else notices.

use holm_sys::project::Usage;

use super::filesystem::{Kind, fails, fill, launch, number, on, quota, settles, size};
use crate::guest::exec;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(full_in_an_image),
    test!(full_by_quota_of_ext4),
    test!(full_by_quota_of_xfs),
    test!(no_way_around_an_image),
    test!(no_way_around_quota_of_ext4),
    test!(no_way_around_quota_of_xfs),
    test!(no_way_around_an_image_without_writing),
    test!(no_way_around_quota_of_ext4_without_writing),
    test!(no_way_around_quota_of_xfs_without_writing),
    test!(limits_come_and_go_on_ext4),
    test!(limits_come_and_go_on_xfs),
    test!(unify_and_fill_again_on_ext4),
    test!(unify_and_fill_again_on_xfs),
];

fn full_in_an_image(sandbox: &mut Sandbox) {
    on(Kind::Plain, sandbox, |sandbox| full(sandbox, Kind::Plain));
}

fn full_by_quota_of_ext4(sandbox: &mut Sandbox) {
    on(Kind::Ext4, sandbox, |sandbox| full(sandbox, Kind::Ext4));
}

fn full_by_quota_of_xfs(sandbox: &mut Sandbox) {
    on(Kind::Xfs, sandbox, |sandbox| full(sandbox, Kind::Xfs));
}

/// A quota of XFS binds the host too: the guest needs more first.
fn restart_full(sandbox: &Sandbox, kind: Kind, more: &str) {
    if kind == Kind::Xfs {
        sandbox.holm(&["stop", "box"]).ok();
        sandbox.holm(&["set", "box", more]).ok();
        sandbox.holm(&["start", "box"]).ok();
        let back = ["disk.size=32M", "disk.inodes=300"];
        sandbox.holm(&[&["set", "box"], &back[..]].concat()).ok();
    } else {
        sandbox.holm(&["restart", "box"]).ok();
    }
}

fn full(sandbox: &Sandbox, kind: Kind) {
    launch(sandbox, "box", &["disk.size=32M", "disk.inodes=300"]);
    launch(sandbox, "other", &["disk.size=32M"]);
    launch(sandbox, "free", &[]);
    let shown = size(sandbox, "box");
    assert!((24 << 10..=32 << 10).contains(&shown), "df shows {shown} KiB");
    let inodes = number(sandbox, "box", "set -- $(df -i / | tail -n 1); echo $2");
    assert!((300..330).contains(&inodes), "df -i shows {inodes}");
    let got = fill(sandbox, "box", "/big");
    assert!((20..=32).contains(&got), "{got} MiB");
    for neighbour in ["other", "free"] {
        exec(sandbox, neighbour, "dd if=/dev/zero of=/a bs=1M count=8 && rm /a").ok();
    }
    restart_full(sandbox, kind, "disk.size=40M");
    exec(sandbox, "box", "rm /big; sync").ok();
    let made = "i=0; while [ $i -lt 1000 ] && true >/tmp/f$i; do i=$((i+1)); done 2>/err; echo $i";
    exec(sandbox, "box", "mkdir /tmp").ok();
    let got = number(sandbox, "box", made);
    assert!((200..330).contains(&got), "{got} files");
    restart_full(sandbox, kind, "disk.inodes=400");
    exec(
        sandbox,
        "other",
        "mkdir /tmp; i=0; while [ $i -lt 500 ]; do true >/tmp/f$i; i=$((i+1)); done",
    )
    .ok();
    exec(sandbox, "box", "rm -r /tmp; : >/a").ok();
    if kind.has_quota() {
        assert_eq!(quota(sandbox, 1).most_bytes, 32 << 20);
    }
    sandbox.holm(&["kill", "--all"]).ok();
    sandbox.holm(&["rm", "box", "other", "free"]).ok();
    if kind.has_quota() {
        settles(sandbox, 1, |left| *left == Usage::default());
    }
}

fn no_way_around_an_image(sandbox: &mut Sandbox) {
    on(Kind::Plain, sandbox, no_way_around);
}

fn no_way_around_quota_of_ext4(sandbox: &mut Sandbox) {
    on(Kind::Ext4, sandbox, no_way_around);
}

fn no_way_around_quota_of_xfs(sandbox: &mut Sandbox) {
    on(Kind::Xfs, sandbox, no_way_around);
}

fn no_way_around(sandbox: &Sandbox) {
    let probe = format!("{}:/probe:ro", sandbox.probe_directory().display());
    let mount = format!("mounts={probe}");
    launch(sandbox, "box", &["disk.size=16M", "disk.inodes=300", &mount]);
    // A hole takes nothing, and filling it does.
    exec(sandbox, "box", "dd if=/dev/zero of=/hole bs=1M count=1 seek=999 2>/dev/null").ok();
    let script = "dd if=/dev/zero of=/hole bs=1M count=64 conv=notrunc 2>&1 | tail -n 1 >&2; \
                  dd if=/dev/zero of=/hole bs=1M count=64 conv=notrunc 2>/dev/null; echo $?";
    assert_eq!(number(sandbox, "box", script), 1, "a hole is filled beyond the limit");
    exec(sandbox, "box", "rm /hole; sync").ok();
    // A file that is open has its blocks, whatever names it has.
    let script = "exec 3>/gone; rm /gone; dd if=/dev/zero bs=1M count=10 >&3 2>/dev/null; \
                  dd if=/dev/zero of=/more bs=1M count=10 2>/dev/null; echo $?";
    assert_eq!(number(sandbox, "box", script), 1, "a deleted file takes no room");
    exec(sandbox, "box", "rm -f /more; sync").ok();
    // The first write to a file of the base copies it.
    fails(
        sandbox,
        "box",
        "dd if=/dev/zero of=/fill bs=64k count=4096 2>/dev/null; : >>/bin/busybox",
    );
    exec(sandbox, "box", "rm /fill; sync; ln -s a /link; mv /link /moved; mkdir /d").ok();
    let ids = ["exec", "box", "/probe/holm-probe", "project", "/", "/d", "/bin", "/bin/busybox"];
    sandbox.holm(&ids).ok();
    let got = fill(sandbox, "box", "/d/big");
    assert!(got <= 16, "{got} MiB");
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

fn no_way_around_an_image_without_writing(sandbox: &mut Sandbox) {
    on(Kind::Plain, sandbox, |sandbox| no_way_around_without_writing(sandbox, Kind::Plain));
}

fn no_way_around_quota_of_ext4_without_writing(sandbox: &mut Sandbox) {
    on(Kind::Ext4, sandbox, |sandbox| no_way_around_without_writing(sandbox, Kind::Ext4));
}

fn no_way_around_quota_of_xfs_without_writing(sandbox: &mut Sandbox) {
    on(Kind::Xfs, sandbox, |sandbox| no_way_around_without_writing(sandbox, Kind::Xfs));
}

/// Directories, extended attributes and clones count, too. Of each the guest could make more than
/// fits into the 2 MiB that it has left.
fn no_way_around_without_writing(sandbox: &Sandbox, kind: Kind) {
    let mount = format!("mounts={}:/probe:ro", sandbox.probe_directory().display());
    launch(sandbox, "box", &["disk.size=16M", "disk.inodes=3000", &mount]);
    exec(sandbox, "box", "dd if=/dev/zero of=/spare bs=1M count=2").ok();
    fill(sandbox, "box", "/big");
    exec(sandbox, "box", "sync; rm /spare; sync").ok();
    let clones = if kind == Kind::Xfs { "full" } else { "not supported" };
    let ways = [("names", 20_000, "full"), ("attributes", 2000, "full"), ("clones", 20, clones)];
    for (what, most, expected) in ways {
        let probe = format!("/probe/holm-probe fill {what} /more {most}");
        let outcome = exec(sandbox, "box", &probe).ok();
        assert!(outcome.stdout.trim().ends_with(expected), "{what}: {outcome}");
        if kind.has_quota() {
            let used = quota(sandbox, 1);
            assert!(used.bytes <= 16 << 20, "{what}: {used:?}");
        }
        exec(sandbox, "box", "sync; rm -r /more; sync").ok();
    }
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

fn limits_come_and_go_on_ext4(sandbox: &mut Sandbox) {
    on(Kind::Ext4, sandbox, limits_come_and_go);
}

fn limits_come_and_go_on_xfs(sandbox: &mut Sandbox) {
    on(Kind::Xfs, sandbox, limits_come_and_go);
}

/// Files that are there when the limit comes count, and can be changed as before.
fn limits_come_and_go(sandbox: &Sandbox) {
    launch(sandbox, "box", &[]);
    exec(
        sandbox,
        "box",
        "mkdir -p /a/b; dd if=/dev/zero of=/a/b/f bs=1M count=10; ln -s f /a/b/l; ln /a/b/f /a/g; \
         rm /bin/ln /bin/df; : >'/a/b/with space'",
    )
    .ok();
    let set = sandbox.holm(&["set", "box", "disk.size=32M"]).ok();
    assert!(set.stdout.contains("at the next start: disk.size"), "{set}");
    sandbox.holm(&["restart", "box"]).ok();
    let used = quota(sandbox, 1);
    assert!(used.bytes >= 10 << 20 && used.inodes >= 8, "{used:?}");
    assert_eq!(used.most_bytes, 32 << 20);
    exec(sandbox, "box", "mv /a/b/l /a/l && : >/bin/ln && rm /bin/ln && mv /a/b /c").ok();
    exec(sandbox, "box", "[ -s /c/f ] && [ -L /a/l ] && [ ! -e /bin/df ]").ok();
    // Now it changes while the guest runs.
    let set = sandbox.holm(&["set", "box", "disk.size=48M"]).ok();
    assert!(!set.stdout.contains("next start"), "{set}");
    let got = fill(sandbox, "box", "/big");
    assert!((30..=38).contains(&got), "{got} MiB beside the ten");
    sandbox.holm(&["set", "box", "disk.size=20M"]).ok();
    fails(sandbox, "box", ": >/more; dd if=/dev/zero of=/more bs=64k count=1");
    exec(sandbox, "box", "rm /big /more; sync").ok();
    sandbox.holm(&["stop", "box"]).ok();
    // By hand: the next start looks.
    let toml = sandbox.root().join("guests/box/guest.toml");
    let text = std::fs::read_to_string(&toml).expect("guest.toml");
    std::fs::write(&toml, text.replace("20M", "64M")).expect("it is written");
    sandbox.holm(&["start", "box"]).ok();
    assert_eq!(quota(sandbox, 1).most_bytes, 64 << 20);
    sandbox.holm(&["unset", "box", "disk.size"]).ok();
    sandbox.holm(&["restart", "box"]).ok();
    assert_eq!(quota(sandbox, 1).most_bytes, 0);
    sandbox.holm(&["rm", "--force", "box"]).ok();
    settles(sandbox, 1, |left| *left == Usage::default());
}

fn unify_and_fill_again_on_ext4(sandbox: &mut Sandbox) {
    on(Kind::Ext4, sandbox, unify_and_fill_again);
}

fn unify_and_fill_again_on_xfs(sandbox: &mut Sandbox) {
    on(Kind::Xfs, sandbox, unify_and_fill_again);
}

/// [quota] What has become objects is charged to each guest that had it.
fn unify_and_fill_again(sandbox: &Sandbox) {
    for name in ["a", "b"] {
        launch(sandbox, name, &["disk.size=32M"]);
        exec(sandbox, name, "dd if=/dev/zero of=/same bs=1M count=16; echo end >>/same").ok();
        sandbox.holm(&["stop", name]).ok();
    }
    std::thread::sleep(std::time::Duration::from_millis(150));
    sandbox.holm(&["unify", "--all", "--min-age", "0"]).ok();
    for (name, context) in [("a", 1), ("b", 2)] {
        let left = settles(sandbox, context, |left| left.bytes < 2 << 20);
        // 32 MiB less 16 MiB and 4 bytes, in blocks.
        assert_eq!(left.most_bytes, 16 << 20, "{left:?}");
        sandbox.holm(&["start", name]).ok();
        assert!(size(sandbox, name) <= 16 << 10);
        let got = fill(sandbox, name, "/more");
        assert!(got < 16, "{got} MiB");
        exec(sandbox, name, "rm /more /same; sync").ok();
        sandbox.holm(&["rm", "--force", name]).ok();
    }
}
