//! `disk.kind = "plain"`: a copy of the base without an overlay.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use rustix::fs::{XattrFlags, lgetxattr, lsetxattr};

use super::filesystem::{Kind, fails, fill, launch, on, quota, settles, size};
use crate::guest::{exec, launch_idle};
use crate::process::Stopped;
use crate::sandbox::Sandbox;
use crate::source::system;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(it_has_all_that_the_base_has),
    test!(it_outlives_restarts_and_not_a_rebuild).bases(&["busybox"]),
    test!(a_killed_copy_is_made_anew).bases(&["busybox"]),
    test!(limits_need_quota),
    test!(limited_on_ext4),
    test!(limited_on_xfs),
    test!(bodies_are_cloned_on_xfs),
    test!(bodies_are_cloned_on_btrfs),
];

/// The second is `cap_net_bind_service=ep`, as linux/capability.h lays it out.
const ATTRIBUTES: [(&str, &str, &[u8]); 2] = [
    ("user.kept", "small", b"yes"),
    ("security.capability", "shared", b"\x01\0\0\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
];

/// What a walk of a root says of each file: names, kinds, modes, owners, times, links, contents.
const LISTED: &str = "cd /; busybox find bin etc odd -exec busybox stat -c '%n %f %u %g %Y %h' {} + \
    | busybox sort; busybox find bin odd -type f -exec busybox md5sum {} + | busybox sort";

fn with_odd_files(dir: &Path) {
    let odd = dir.join("odd");
    fs::create_dir(&odd).expect("a directory");
    let large = vec![7; 100_000];
    for (name, mode) in [("program", 0o4755), ("secret", 0o600), ("shared", 0o2770)] {
        let path = odd.join(name);
        fs::write(&path, &large).expect("a file");
        chown(&path, Some(7), Some(8)).expect("its owner");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode");
    }
    fs::write(odd.join("small"), "x").expect("a file");
    fs::hard_link(odd.join("secret"), odd.join("again")).expect("a link");
    symlink("../bin/busybox", odd.join("link")).expect("a link");
    let run = |program: &str, args: &[&str], file: &str| {
        let done = Command::new(program).args(args).arg(odd.join(file)).status();
        assert!(done.expect(program).success(), "{program} {file}");
    };
    run("mkfifo", &["-m", "640"], "pipe");
    for (attribute, file, value) in ATTRIBUTES {
        lsetxattr(odd.join(file), attribute, value, XattrFlags::empty()).expect("an attribute");
    }
    run("touch", &["-d", "2001-02-03 04:05:06"], "secret");
    fs::set_permissions(&odd, fs::Permissions::from_mode(0o1777)).expect("its mode");
}

fn it_has_all_that_the_base_has(sandbox: &mut Sandbox) {
    let source = system(sandbox, with_odd_files);
    sandbox.holm(&["base", "import", "odd", &source]).ok();
    let listed = |name: &str, kind: &str| {
        let kind = format!("disk.kind={kind}");
        let head = ["launch", name, "--base", "odd", "--net", "none", "--set", &kind];
        sandbox.holm(&[&head[..], &["--", "/bin/busybox", "sleep", "1000"]].concat()).ok();
        exec(sandbox, name, LISTED).ok().stdout
    };
    let (overlay, plain) = (listed("a", "overlay"), listed("b", "plain"));
    assert!(overlay.lines().count() > 10, "{overlay}");
    // Directories of btrfs have one link, whatever is in them.
    let has_links = fs::metadata(sandbox.root()).expect("the Holm root").nlink() > 1;
    let is_directory =
        |line: &str| line.split(' ').nth(1).is_some_and(|mode| mode.starts_with('4'));
    let without_links = |line: &str| match line.rsplit_once(' ') {
        Some((without, _)) if !has_links && is_directory(line) => without.to_owned(),
        _ => line.to_owned(),
    };
    // Only what Holm writes into a root before init runs differs, by its time.
    let of_the_base = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with("etc")).map(without_links).collect()
    };
    assert_eq!(of_the_base(&plain), of_the_base(&overlay));
    let root = sandbox.root().join("guests/b/disk/root");
    for (attribute, file, value) in ATTRIBUTES {
        let mut found = [0; 64];
        let length = lgetxattr(root.join("odd").join(file), attribute, &mut found[..]);
        assert_eq!(&found[..length.expect(attribute)], value, "{attribute}");
    }
    let mounts = exec(sandbox, "b", "busybox grep ' / ' /proc/mounts").ok().stdout;
    assert!(!mounts.contains("overlay"), "{mounts}");
    sandbox.holm(&["unify", "b"]).refused(&["root of its own"]);
    sandbox.holm(&["fsck"]).ok();
    sandbox.holm(&["rm", "--force", "a", "b"]).ok();
}

fn it_outlives_restarts_and_not_a_rebuild(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &["--set", "disk.kind=plain"]);
    let id = exec(sandbox, "box", "echo kept >/file; rm /bin/vi; cat /etc/machine-id").ok().stdout;
    sandbox.holm(&["restart", "box"]).ok();
    let script = "cat /file /etc/machine-id; [ ! -e /bin/vi ]";
    assert_eq!(exec(sandbox, "box", script).ok().stdout, format!("kept\n{id}"));
    sandbox.holm(&["set", "box", "disk.kind=overlay"]).refused(&["disk.kind is fixed"]);
    let copy = ["root of guest box is a copy of base busybox", "`holm rebuild box --base BASE`"];
    sandbox.holm(&["set", "box", "base=other"]).refused(&copy);
    let on_disk = fs::metadata(sandbox.root().join("guests/box/disk/root/file")).expect("its file");
    assert_eq!(on_disk.uid(), 0, "owners on the disk are those in the guest");
    sandbox.holm(&["rebuild", "--force", "box"]).ok();
    sandbox.holm(&["start", "box"]).ok();
    assert_eq!(exec(sandbox, "box", "[ ! -e /file ]; ls /bin/vi").ok().stdout, "/bin/vi\n");
    assert_eq!(exec(sandbox, "box", "cat /etc/machine-id").ok().stdout, id, "its identity stays");
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

fn a_killed_copy_is_made_anew(sandbox: &mut Sandbox) {
    sandbox.holm(&["create", "box", "--base", "busybox", "--set", "disk.kind=plain"]).ok();
    let stopped = Stopped::new(sandbox, &["start", "box"], "plain-copied");
    let disk = sandbox.root().join("guests/box/disk");
    assert!(disk.join("root.new/bin/busybox").exists() && !disk.join("root").exists());
    stopped.kill_it();
    drop(stopped);
    fs::write(disk.join("root.new/of-the-killed"), "").expect("it is half made");
    sandbox.holm(&["start", "box"]).ok();
    assert!(disk.join("root/bin/busybox").exists() && !disk.join("root.new").exists());
    exec(sandbox, "box", "[ ! -e /of-the-killed ]").ok();
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

fn limits_need_quota(sandbox: &mut Sandbox) {
    on(Kind::Plain, sandbox, |sandbox| {
        let wanted = ["create", "box", "--base", "own", "--set", "disk.kind=plain"];
        let refused = ["disk.kind = \"plain\"", "project quota", "holm doctor quota"];
        sandbox.holm(&[&wanted[..], &["--set", "disk.size=64M"]].concat()).refused(&refused);
        sandbox.holm(&wanted).ok();
        sandbox.holm(&["set", "box", "disk.size=64M"]).refused(&refused);
        sandbox.holm(&["rm", "box"]).ok();
    });
}

fn limited_on_ext4(sandbox: &mut Sandbox) {
    on(Kind::Ext4, sandbox, limited);
}

fn limited_on_xfs(sandbox: &mut Sandbox) {
    on(Kind::Xfs, sandbox, limited);
}

/// [quota] The base's files are the guest's own, and count.
fn limited(sandbox: &Sandbox) {
    launch(sandbox, "box", &["disk.kind=plain", "disk.size=32M"]);
    assert!(size(sandbox, "box") <= 32 << 10);
    assert!(quota(sandbox, 1).bytes > 500_000, "busybox is charged");
    assert!((20..32).contains(&fill(sandbox, "box", "/big")));
    exec(sandbox, "box", "rm /big; sync").ok();
    sandbox.holm(&["rebuild", "--force", "box"]).ok();
    sandbox.holm(&["start", "box"]).ok();
    assert!((20..32).contains(&fill(sandbox, "box", "/bin/big")));
    fails(sandbox, "box", "dd if=/dev/zero of=/more bs=1M count=4");
    sandbox.holm(&["rm", "--force", "box"]).ok();
    settles(sandbox, 1, |left| *left == holm_sys::project::Usage::default());
}

fn bodies_are_cloned_on_xfs(sandbox: &mut Sandbox) {
    on(Kind::Xfs, sandbox, bodies_are_cloned);
}

fn bodies_are_cloned_on_btrfs(sandbox: &mut Sandbox) {
    on(Kind::Btrfs, sandbox, bodies_are_cloned);
}

fn bodies_are_cloned(sandbox: &Sandbox) {
    launch(sandbox, "box", &["disk.kind=plain"]);
    let file = sandbox.root().join("guests/box/disk/root/bin/busybox");
    let shown = sandbox.run(Command::new("filefrag").arg("-v").arg(&file)).ok();
    assert!(shown.stdout.contains("shared"), "{shown}");
    // While it runs, nobody can write to it.
    sandbox.holm(&["stop", "box"]).ok();
    let written = fs::OpenOptions::new().write(true).open(&file);
    written.and_then(|mut file| file.write_all(b"changed")).expect("the guest's own file");
    let fsck = sandbox.holm(&["fsck"]);
    assert_eq!(fsck.code(), 0, "the object is as it was: {fsck}");
    sandbox.holm(&["rm", "--force", "box"]).ok();
}
