//! Directories, files and devices of the host in a guest, with their owners.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use crate::guest::{exec, launch_idle, remove};
use crate::sandbox::{Sandbox, skip};
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(owners_are_the_same_on_both_sides).bases(&["busybox"]),
    test!(files_can_be_bound_and_read_only_holds).bases(&["busybox"]),
    test!(a_bound_directory_gives_no_rights).bases(&["busybox"]),
    test!(sources_that_cannot_be_bound_are_named).bases(&["busybox"]),
    test!(devices_are_given_by_name).bases(&["busybox"]),
];

/// A directory for the guest, on the disk that the root is on.
fn directory(sandbox: &Sandbox, name: &str) -> PathBuf {
    let directory = sandbox.root().join(name);
    fs::create_dir_all(&directory).expect("a directory");
    directory
}

fn bind(source: &Path, target: &str) -> String {
    format!("{}:{target}", source.display())
}

/// Owner, group and mode, as the host has them.
fn host_side(path: &Path) -> (u32, u32, u32) {
    let found = fs::symlink_metadata(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    (found.uid(), found.gid(), found.mode() & 0o7777)
}

fn owners_are_the_same_on_both_sides(sandbox: &mut Sandbox) {
    let data = directory(sandbox, "data");
    for (name, uid, gid) in [("roots", 0, 0), ("theirs", 33, 34), ("last", 65534, 65534)] {
        fs::write(data.join(name), "from the host\n").unwrap();
        chown(data.join(name), Some(uid), Some(gid)).unwrap();
    }
    // Outside the guest's id range: nobody inside.
    fs::write(data.join("beyond"), "").unwrap();
    chown(data.join("beyond"), Some(70000), Some(70000)).unwrap();
    fs::create_dir(data.join("open")).unwrap();
    fs::set_permissions(data.join("open"), Permissions::from_mode(0o1777)).unwrap();

    launch_idle(sandbox, "box", &["-v", &bind(&data, "/srv/data")]);
    let list = "cd /srv/data && stat -c '%n %u:%g' . roots theirs last beyond && cat roots";
    assert_eq!(
        exec(sandbox, "box", list).ok().stdout,
        ". 0:0\nroots 0:0\ntheirs 33:34\nlast 65534:65534\nbeyond 65534:65534\nfrom the host\n"
    );
    exec(sandbox, "box", "cd /srv/data && echo new >made && chown 5:6 theirs && mkdir -m 750 sub")
        .ok();
    assert_ne!(exec(sandbox, "box", "chown 5:6 /srv/data/beyond").code(), 0, "not its to give");
    let script = "cd /srv/data && echo own >open/mine && mkfifo open/fifo && ln -s x open/link && ! echo x >nope";
    sandbox.holm(&["exec", "--user", "1000:1001", "box", "--", "sh", "-c", script]).ok();
    for (name, expected) in [
        ("made", (0, 0, 0o644)),
        ("theirs", (5, 6, 0o644)),
        ("sub", (0, 0, 0o750)),
        ("beyond", (70000, 70000, 0o644)),
        ("open/mine", (1000, 1001, 0o644)),
        ("open/fifo", (1000, 1001, 0o644)),
        ("open/link", (1000, 1001, 0o777)),
    ] {
        assert_eq!(host_side(&data.join(name)), expected, "{name}");
    }
    assert_eq!(fs::read_to_string(data.join("open/mine")).unwrap(), "own\n");

    // Another guest, with other ids on the host, sees the same owners.
    let args = ["run", "--base", "busybox", "--net", "none", "-v", &bind(&data, "/data"), "--"];
    let look = ["sh", "-c", "stat -c %u:%g /data/made /data/open/mine; echo more >>/data/made"];
    let seen = sandbox.holm(&[&args[..], &look].concat()).ok();
    assert_eq!(seen.stdout, "0:0\n1000:1001\n", "{seen}");
    assert_eq!(exec(sandbox, "box", "cat /srv/data/made").ok().stdout, "new\nmore\n");
    remove(sandbox, "box");
}

fn files_can_be_bound_and_read_only_holds(sandbox: &mut Sandbox) {
    let data = directory(sandbox, "data");
    fs::write(data.join("one"), "one\n").unwrap();
    launch_idle(sandbox, "box", &["-v", &bind(&data.join("one"), "/etc/one")]);
    exec(sandbox, "box", "echo two >>/etc/one").ok();
    assert_eq!(fs::read_to_string(data.join("one")).unwrap(), "one\ntwo\n");

    let more = format!("mounts+={}", bind(&data, "/data:ro"));
    let set = sandbox.holm(&["set", "box", &more]).ok();
    assert!(set.stdout.contains("at the next start: mounts"), "{set}");
    sandbox.holm(&["restart", "box"]).ok();
    let refused = exec(sandbox, "box", "cat /data/one; echo three >>/data/one; touch /data/new");
    assert_eq!(refused.stdout, "one\ntwo\n", "{refused}");
    assert_eq!(refused.stderr.matches("Read-only file system").count(), 2, "{refused}");
    exec(sandbox, "box", "echo three >>/etc/one").ok();
    assert_eq!(fs::read_to_string(data.join("one")).unwrap(), "one\ntwo\nthree\n");
    remove(sandbox, "box");
}

/// Setuid programs and device nodes in it do not work.
fn a_bound_directory_gives_no_rights(sandbox: &mut Sandbox) {
    let data = directory(sandbox, "data");
    let status =
        std::process::Command::new("mknod").arg(data.join("null")).args(["c", "1", "3"]).status();
    assert!(status.is_ok_and(|status| status.success()), "the host can make a node");
    launch_idle(sandbox, "box", &["-v", &bind(&data, "/data")]);
    let script = "cp /bin/busybox /data/su && chmod 4755 /data/su && ! mknod /data/zero c 1 5 && ! cat /data/null";
    exec(sandbox, "box", script).ok();
    let su = sandbox.holm(&["exec", "--user", "1000", "box", "/data/su", "-c", "id"]);
    assert!(su.code() != 0 && su.stderr.contains("must be suid"), "{su}");
    // Its owner on the host is root: see docs/guests.md.
    assert_eq!(host_side(&data.join("su")), (0, 0, 0o4755));
    remove(sandbox, "box");
}

fn sources_that_cannot_be_bound_are_named(sandbox: &mut Sandbox) {
    let data = directory(sandbox, "data");
    symlink(&data, sandbox.root().join("link")).unwrap();
    fs::create_dir(data.join("sub")).unwrap();
    for (source, message) in [
        (data.join("gone"), ["does not exist", "mounts"]),
        (sandbox.root().join("link"), ["symbolic link", "realpath"]),
        (sandbox.root().join("link/sub"), ["symbolic link", "realpath"]),
        (PathBuf::from("/proc/sys"), ["cannot map owners", "ext4"]),
        (PathBuf::from("/dev/null"), ["only directories, files and sockets", "bound"]),
    ] {
        let text = bind(&source, "/data");
        let run = ["run", "--base", "busybox", "--net", "none", "-v", &text, "--", "true"];
        let refused = sandbox.holm(&run).refused(&message);
        assert!(refused.stderr.contains(&source.display().to_string()), "{refused}");
    }
}

/// What each given device is asked to do as guest root, once it is open.
const DEVICES: [(&str, &str); 3] = [
    ("/dev/net/tun", "tunctl -t tap7 >/dev/null && test -e /sys/class/net/tap7"),
    ("/dev/kvm", "true"),
    ("/dev/fuse", "true"),
];

fn devices_are_given_by_name(sandbox: &mut Sandbox) {
    let opens = |device: &str| OpenOptions::new().read(true).write(true).open(device).is_ok();
    let given: Vec<_> = DEVICES.into_iter().filter(|(device, _)| opens(device)).collect();
    if given.is_empty() {
        skip("this host has none of /dev/net/tun, /dev/kvm and /dev/fuse");
    }
    launch_idle(sandbox, "box", &[]);
    for (device, _) in &given {
        assert_ne!(exec(sandbox, "box", &format!("test -e {device}")).code(), 0, "{device}");
        sandbox.holm(&["set", "box", &format!("devices+={device}")]).ok();
    }
    sandbox.holm(&["restart", "box"]).ok();
    for (device, script) in &given {
        let open = format!(": <>{device}");
        exec(sandbox, "box", &format!("{open} && {script} && stat -c '%u:%g %F' {device}")).ok();
        let other = sandbox.holm(&["exec", "--user", "1000", "box", "--", "sh", "-c", &open]);
        let host = File::open(device).unwrap().metadata().unwrap().mode() & 0o006 == 0o006;
        assert_eq!(other.status.success(), host, "others may what they may on the host\n{other}");
    }
    for (device, message) in [
        ("/dev/no-such", "/dev/no-such"),
        ("/dev/net", "not a device node"),
        ("/etc/passwd", "not a device"),
        ("/dev/null", "every guest has it"),
        ("/dev/ptmx", "every guest has it"),
    ] {
        let setting = format!("devices={device}");
        let run = ["run", "--base", "busybox", "--net", "none", "--set", &setting, "--", "true"];
        sandbox.holm(&run).rejected(&[message]);
    }
    remove(sandbox, "box");
}
