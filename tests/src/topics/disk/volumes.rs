//! Volumes with a size limit, by project quota or in disk images.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use holm_sys::project::Usage;

use super::filesystem::{Kind, fails, fill, launch, loop_devices, number, on, run, usage};
use crate::guest::exec;
use crate::process::is_stopped;
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(limited_on_ext4),
    test!(limited_on_xfs),
    test!(one_with_files_gets_a_limit_on_ext4),
    test!(one_with_files_gets_a_limit_on_xfs),
    test!(limited_in_an_image),
    test!(limited_on_btrfs),
    test!(one_with_files_gets_an_image),
    test!(a_killed_conversion_is_finished),
    test!(a_damaged_image_is_checked),
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

fn limited_in_an_image(sandbox: &mut Sandbox) {
    on(Kind::Plain, sandbox, in_an_image);
}

fn limited_on_btrfs(sandbox: &mut Sandbox) {
    on(Kind::Btrfs, sandbox, in_an_image);
}

fn in_an_image(sandbox: &Sandbox) {
    sandbox.holm(&["volume", "create", "other", "--size", "32M"]).ok();
    launch(sandbox, "box", &["volumes=data:/data:32M"]);
    launch(sandbox, "neighbour", &[r#"volumes=["data:/data", "other:/other"]"#]);
    assert_eq!(loop_devices(sandbox), 2, "one for each volume");
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let at = sandbox.root().join("volumes").display().to_string();
    assert!(!mounts.contains(&at), "{mounts}");
    let before = shown(sandbox, "box");
    assert!((20 << 10..=32 << 10).contains(&before), "{before}");
    assert!((20..=32).contains(&fill(sandbox, "box", "/data/big")));
    // It is full for all that have it, and nothing else is.
    fails(sandbox, "neighbour", "dd if=/dev/zero of=/data/more bs=1M count=8");
    exec(sandbox, "neighbour", "[ -s /data/big ] && rm /data/more").ok();
    for file in ["/other/a", "/a"] {
        exec(sandbox, "neighbour", &format!("dd if=/dev/zero of={file} bs=1M count=16")).ok();
    }
    let shown_of = |name: &str| {
        let printed = sandbox.holm(&["volume", "inspect", name, "--json"]).ok().json();
        assert!(printed["data"].is_null() && printed["image"].is_string(), "{printed}");
        printed["limit_bytes"].as_u64().expect("a limit")
    };
    // More: at once where this may grow an ext4 (CAP_SYS_RESOURCE), else when no guest has it.
    sandbox.holm(&["volume", "set", "data", "--size", "64M"]).ok();
    assert_eq!(shown_of("data"), 64 << 20);
    sandbox.holm(&["stop", "--all"]).ok();
    sandbox.wait_for("the loop devices go", || (loop_devices(sandbox) == 0).then_some(()));
    sandbox.holm(&["start", "box", "neighbour"]).ok();
    let after = shown(sandbox, "neighbour");
    assert!(after > before + (28 << 10), "{before} {after}");
    assert!((50..64).contains(&fill(sandbox, "box", "/data/big")));
    // Less: when no guest has it, and not less than is in it.
    let less = sandbox.holm(&["volume", "set", "other", "--size", "24M"]).ok();
    assert!(less.stdout.contains("from the next start"), "{less}");
    sandbox.holm(&["stop", "--all"]).ok();
    sandbox.wait_for("the loop devices go", || (loop_devices(sandbox) == 0).then_some(()));
    let refused = sandbox.holm(&["volume", "set", "data", "--size", "24M"]);
    refused.refused(&["volume.img", "so small", "remove files"]);
    assert_eq!(shown_of("data"), 64 << 20);
    let always = ["other is in a disk image, which always has a size"];
    sandbox.holm(&["volume", "set", "other", "--size", "none"]).refused(&always);
    sandbox.holm(&["start", "neighbour"]).ok();
    exec(sandbox, "neighbour", "[ -s /other/a ] && [ -s /data/big ]").ok();
    let (_, lines) = (sandbox.holm(&["df"]).ok(), sandbox.holm(&["volume", "ls"]).ok().stdout);
    assert!(lines.contains("USED") && lines.contains("64.0M"), "{lines}");
    sandbox.holm(&["rm", "--force", "--volumes", "box", "neighbour"]).ok();
    assert_eq!(sandbox.holm(&["volume", "ls", "-q"]).ok().stdout, "");
    sandbox.wait_for("the loop devices go", || (loop_devices(sandbox) == 0).then_some(()));
}

/// Owners, links and attributes are what they were, and the size holds.
fn one_with_files_gets_an_image(sandbox: &mut Sandbox) {
    on(Kind::Plain, sandbox, |sandbox| {
        launch(sandbox, "box", &["volumes=data:/data"]);
        let files = "cd /data; dd if=/dev/zero of=a bs=1M count=16; ln a b; ln -s a c; echo x >d; \
            busybox chown 33:44 d; busybox chmod 2750 . d";
        exec(sandbox, "box", files).ok();
        let look = "cd /data; busybox stat -c '%n %a %u %g %h %s %F' . *";
        let before = exec(sandbox, "box", look).ok().stdout;
        let set = ["volume", "set", "data", "--size", "32M"];
        sandbox.holm(&set).refused(&["data is in use by guest box", "holm stop box"]);
        sandbox.holm(&["stop", "box"]).ok();
        let full = sandbox.holm(&["volume", "set", "data", "--size", "16M"]);
        full.refused(&["volume data: there is no room for what is in", "larger size"]);
        assert!(sandbox.root().join("volumes/data/data/a").exists());
        sandbox.holm(&set).ok();
        assert!(!sandbox.root().join("volumes/data/data").exists());
        assert_eq!(fs::read_dir(sandbox.root().join("tmp")).expect("tmp").count(), 0);
        sandbox.holm(&["start", "box"]).ok();
        let after = exec(sandbox, "box", look).ok().stdout;
        let but_size = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(but_size(&after), but_size(&before));
        assert!(after.starts_with(". 2750 0 0 "), "{after}");
        assert!((4..=16).contains(&fill(sandbox, "box", "/data/big")), "what was there counts");
        sandbox.holm(&["rm", "--force", "--volumes", "box"]).ok();
    });
}

/// From the rename on the image is the volume.
fn a_killed_conversion_is_finished(sandbox: &mut Sandbox) {
    on(Kind::Plain, sandbox, |sandbox| {
        launch(sandbox, "box", &["volumes=data:/data"]);
        exec(sandbox, "box", "echo kept >/data/a").ok();
        sandbox.holm(&["stop", "box"]).ok();
        let mut set = sandbox.command_with_fault("HOLM_STOP_AT", "volume-converted");
        let mut set = set.args(["volume", "set", "data", "--size", "32M"]).spawn().expect("holm");
        sandbox.wait_for("it is converted", || is_stopped(set.id()).then_some(()));
        set.kill().expect("our child");
        set.wait().expect("our child");
        sandbox.holm(&["start", "box"]).ok();
        assert!(!sandbox.root().join("volumes/data/data").exists());
        exec(sandbox, "box", "echo more >>/data/a").ok();
        let inspected = sandbox.holm(&["volume", "inspect", "data"]).ok().stdout;
        assert!(inspected.contains("volume.img"), "{inspected}");
        // The limit was not written yet.
        sandbox.holm(&["volume", "set", "data", "--size", "48M"]).ok();
        sandbox.holm(&["restart", "box"]).ok();
        assert!((30 << 10..48 << 10).contains(&shown(sandbox, "box")));
        assert_eq!(exec(sandbox, "box", "cat /data/a").ok().stdout, "kept\nmore\n");
        sandbox.holm(&["rm", "--force", "--volumes", "box"]).ok();
    });
}

fn a_damaged_image_is_checked(sandbox: &mut Sandbox) {
    on(Kind::Plain, sandbox, |sandbox| {
        sandbox.holm(&["volume", "create", "data", "--size", "32M"]).ok();
        launch(sandbox, "box", &["volumes=data:/data"]);
        exec(sandbox, "box", "echo kept >/data/a").ok();
        sandbox.holm(&["stop", "box"]).ok();
        sandbox.wait_for("its loop device goes", || (loop_devices(sandbox) == 0).then_some(()));
        let path = sandbox.root().join("volumes/data/volume.img");
        // The kernel has noted errors.
        let image = path.to_string_lossy();
        run(sandbox, "debugfs", &["-w", "-R", "set_super_value state 2", &image]);
        let started = sandbox.holm(&["start", "box"]).ok();
        assert!(started.stderr.contains("volume.img was checked"), "{started}");
        assert_eq!(exec(sandbox, "box", "cat /data/a").ok().stdout, "kept\n");
        sandbox.holm(&["stop", "box"]).ok();
        sandbox.wait_for("its loop device goes", || (loop_devices(sandbox) == 0).then_some(()));
        let file = OpenOptions::new().write(true).open(&path).expect("the image");
        file.write_all_at(&[0; 1024], 1024).expect("its superblock");
        sandbox.holm(&["start", "box"]).refused(&["volume.img", "it contains no ext4", "e2fsck"]);
        sandbox.holm(&["rm", "--volumes", "box"]).ok();
    });
}
