//! Disk images.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::filesystem::{Kind, fails, fill, launch, loop_devices, on, run, size};
use crate::guest::{exec, pid, status};
use crate::sandbox::Sandbox;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(its_size_changes),
    test!(a_full_one_starts),
    test!(what_an_image_cannot_do_is_refused),
    test!(one_loop_device_while_a_mount_lingers),
    test!(a_size_waits_for_the_old_mount),
    test!(a_damaged_image),
    test!(unify_leaves_it_out),
    test!(a_rebuild_makes_another),
];

fn a_rebuild_makes_another(sandbox: &mut Sandbox) {
    on(Kind::Plain, sandbox, |sandbox| {
        launch(sandbox, "box", &["disk.size=32M"]);
        exec(sandbox, "box", ": >/file").ok();
        let before = size(sandbox, "box");
        sandbox.holm(&["stop", "box"]).ok();
        sandbox.holm(&["rebuild", "box"]).ok();
        sandbox.holm(&["start", "box"]).ok();
        exec(sandbox, "box", "test ! -e /file").ok();
        assert_eq!(size(sandbox, "box"), before);
        sandbox.holm(&["rm", "--force", "box"]).ok();
        sandbox.wait_for("its loop device goes", || (loop_devices(sandbox) == 0).then_some(()));
    });
}

fn its_size_changes(sandbox: &mut Sandbox) {
    on(Kind::Plain, sandbox, |sandbox| {
        launch(sandbox, "box", &["disk.size=32M"]);
        exec(sandbox, "box", "echo kept >/kept").ok();
        let before = size(sandbox, "box");
        sandbox.holm(&["set", "box", "disk.size=64M"]).ok();
        // At once where this may grow an ext4 (CAP_SYS_RESOURCE), else now.
        sandbox.holm(&["restart", "box"]).ok();
        let after = size(sandbox, "box");
        assert!(after > before + (28 << 10), "{before} {after}");
        let got = fill(sandbox, "box", "/big");
        assert!((50..64).contains(&got), "{got} MiB");
        let set = sandbox.holm(&["set", "box", "disk.size=24M"]).ok();
        assert!(set.stdout.contains("at the next start: disk.size"), "{set}");
        sandbox.holm(&["restart", "box"]).refused(&["disk.img", "so small", "remove files"]);
        sandbox.holm(&["set", "box", "disk.size=64M"]).ok();
        sandbox.holm(&["start", "box"]).ok();
        exec(sandbox, "box", "rm /big; sync").ok();
        sandbox.holm(&["set", "box", "disk.size=24M"]).ok();
        sandbox.holm(&["restart", "box"]).ok();
        assert!(size(sandbox, "box") <= 24 << 10);
        assert_eq!(exec(sandbox, "box", "cat /kept").ok().stdout, "kept\n");
        assert_eq!(loop_devices(sandbox), 1);
        sandbox.holm(&["rm", "--force", "box"]).ok();
        sandbox.wait_for("its loop device goes", || (loop_devices(sandbox) == 0).then_some(()));
    });
}

/// overlayfs makes its work directory anew at each mount. That got no block once ext4 had taken
/// some of those that it holds back, as it does for a database that writes where it has allocated
/// room before.
fn a_full_one_starts(sandbox: &mut Sandbox) {
    on(Kind::Plain, sandbox, |sandbox| {
        launch(sandbox, "box", &["disk.size=32M"]);
        exec(sandbox, "box", "fallocate -l 8388608 /data").ok();
        fill(sandbox, "box", "/big");
        let script = "while echo >/small$((i++)); do :; done; sync; i=0; \
                      while [ $i -lt 2048 ]; do \
                      echo | dd of=/data bs=4096 seek=$i count=1 conv=notrunc; i=$((i+2)); done; \
                      sync; ! echo >/more";
        let outcome = exec(sandbox, "box", script);
        assert!(outcome.stderr.ends_with("No space left on device\n"), "{outcome}");
        sandbox.holm(&["restart", "box"]).ok();
        fails(sandbox, "box", "echo >/more");
        exec(sandbox, "box", "rm /big && echo new >/new").ok();
        sandbox.holm(&["rm", "--force", "box"]).ok();
    });
}

fn what_an_image_cannot_do_is_refused(sandbox: &mut Sandbox) {
    on(Kind::Plain, sandbox, |sandbox| {
        let create = |settings: &[&str]| {
            let head = ["create", "box", "--base", "own", "--net", "none"];
            sandbox.holm(&[&head[..], settings, &["--", "sleep", "99999"]].concat())
        };
        create(&["--set", "disk.inodes=1000"]).refused(&["disk.inodes needs disk.size", "doctor"]);
        let small = create(&["--set", "disk.size=1M"]);
        assert!(small.stderr.contains("1M is too small for a disk; the least is 16M"), "{small}");
        launch(sandbox, "box", &[]);
        exec(sandbox, "box", ": >/file").ok();
        let has_files = ["the guest has files already", "before the first start"];
        sandbox.holm(&["set", "box", "disk.size=32M"]).refused(&has_files);
        sandbox.holm(&["rm", "--force", "box"]).ok();
        create(&["--set", "disk.size=32M"]).ok();
        sandbox.holm(&["unset", "box", "disk.size"]).refused(&["always has a size"]);
        sandbox.holm(&["set", "box", "disk.inodes=900"]).refused(&["inodes is fixed"]);
        sandbox.holm(&["start", "box"]).ok();
        let kind = ["disk.kind is fixed", "create the guest anew"];
        sandbox.holm(&["set", "box", "disk.kind=memory"]).refused(&kind);
        // By hand: the guest keeps its files.
        exec(sandbox, "box", "echo kept >/kept").ok();
        sandbox.holm(&["stop", "box"]).ok();
        let toml = sandbox.root().join("guests/box/guest.toml");
        let text = std::fs::read_to_string(&toml).expect("guest.toml");
        let without = text.lines().filter(|line| !line.contains("size"));
        std::fs::write(&toml, without.collect::<Vec<_>>().join("\n")).expect("it is written");
        sandbox.holm(&["start", "box"]).ok();
        assert_eq!(exec(sandbox, "box", "cat /kept").ok().stdout, "kept\n");
        sandbox.holm(&["rm", "--force", "box"]).ok();
    });
}

/// [host facts] A descriptor in a guest's root keeps its mounts, and so the loop device: a second
/// one on the same image would damage the filesystem.
fn one_loop_device_while_a_mount_lingers(sandbox: &mut Sandbox) {
    on(Kind::Plain, sandbox, |sandbox| {
        launch(sandbox, "box", &["disk.size=32M"]);
        let init = pid(&status(sandbox, "box"), "init_pid");
        let held = File::open(format!("/proc/{init}/root/")).expect("the guest's root");
        exec(sandbox, "box", "echo first >/file").ok();
        sandbox.holm(&["kill", "box"]).ok();
        assert_eq!(loop_devices(sandbox), 1, "the mount lingers");
        sandbox.holm(&["start", "box"]).ok();
        assert_eq!(loop_devices(sandbox), 1);
        assert_eq!(exec(sandbox, "box", "cat /file").ok().stdout, "first\n");
        exec(sandbox, "box", "echo second >/file").ok();
        drop(held);
        sandbox.holm(&["restart", "box"]).ok();
        assert_eq!(exec(sandbox, "box", "cat /file").ok().stdout, "second\n");
        sandbox.holm(&["rm", "--force", "box"]).ok();
    });
}

/// A restart does what `set` has promised for it.
fn a_size_waits_for_the_old_mount(sandbox: &mut Sandbox) {
    on(Kind::Plain, sandbox, |sandbox| {
        launch(sandbox, "box", &["disk.size=32M"]);
        let init = pid(&status(sandbox, "box"), "init_pid");
        let held = File::open(format!("/proc/{init}/root/")).expect("the guest's root");
        let set = sandbox.holm(&["set", "box", "disk.size=24M"]).ok();
        assert!(set.stdout.contains("at the next start: disk.size"), "{set}");
        sandbox.holm(&["kill", "box"]).ok();
        sandbox.holm(&["start", "box"]).refused(&[
            "disk.img is still mounted",
            "files of the",
            "last run open; end it",
            "again",
        ]);
        std::thread::scope(|scope| {
            let start = scope.spawn(|| sandbox.holm(&["start", "box"]));
            std::thread::sleep(Duration::from_millis(300));
            drop(held);
            start.join().expect("it ends").ok();
        });
        assert!(size(sandbox, "box") <= 24 << 10);
        sandbox.holm(&["rm", "--force", "box"]).ok();
        sandbox.wait_for("its loop device goes", || (loop_devices(sandbox) == 0).then_some(()));
    });
}

fn a_damaged_image(sandbox: &mut Sandbox) {
    on(Kind::Plain, sandbox, |sandbox| {
        launch(sandbox, "box", &["disk.size=32M"]);
        exec(sandbox, "box", "echo kept >/kept").ok();
        sandbox.holm(&["stop", "box"]).ok();
        sandbox.wait_for("its loop device goes", || (loop_devices(sandbox) == 0).then_some(()));
        let path = sandbox.root().join("guests/box/disk.img");
        let image = OpenOptions::new().read(true).write(true).open(&path).expect("the image");
        // The kernel has noted errors.
        let path = path.to_string_lossy();
        run(sandbox, "debugfs", &["-w", "-R", "set_super_value state 2", &path]);
        let started = sandbox.holm(&["start", "box"]).ok();
        assert!(started.stderr.contains("disk.img was checked"), "{started}");
        assert_eq!(exec(sandbox, "box", "cat /kept").ok().stdout, "kept\n");
        sandbox.holm(&["stop", "box"]).ok();
        sandbox.wait_for("its loop device goes", || (loop_devices(sandbox) == 0).then_some(()));
        image.write_all_at(&[0; 1024], 1024).expect("its superblock");
        sandbox.holm(&["start", "box"]).refused(&["disk.img", "it contains no ext4", "e2fsck"]);
        sandbox.holm(&["rm", "box"]).ok();
    });
}

fn unify_leaves_it_out(sandbox: &mut Sandbox) {
    on(Kind::Plain, sandbox, |sandbox| {
        launch(sandbox, "box", &["disk.size=32M"]);
        sandbox.holm(&["unify", "box"]).refused(&["guest box", "root of its own"]);
        let all = sandbox.holm(&["unify", "--all"]).ok();
        assert!(all.stderr.contains("box is left out"), "{all}");
        sandbox.holm(&["rm", "--force", "box"]).ok();
    });
}
