//! Volumes: their life, their owners in guests, and what a hostile guest can do with a target.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use crate::guest::{exec, launch_idle};
use crate::process::is_stopped;
use crate::sandbox::Sandbox;
use crate::source::system;
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(a_volume_outlives_its_guest).bases(&["busybox"]),
    test!(it_begins_as_the_base_has_it),
    test!(two_guests_have_it_with_their_own_ids).bases(&["busybox"]),
    test!(a_read_only_one_and_device_nodes).bases(&["busybox"]),
    test!(one_in_use_is_not_removed).bases(&["busybox"]),
    test!(a_removed_guest_may_take_its_volumes).bases(&["busybox"]),
    test!(links_at_the_target_lead_nowhere_outside).bases(&["busybox"]),
    test!(one_below_another).bases(&["busybox"]),
    test!(wrong_names_and_targets).bases(&["busybox"]),
    test!(a_killed_copy_is_begun_anew),
    test!(a_killed_removal_is_finished).bases(&["busybox"]),
    test!(the_guest_reaches_nothing_beside_it).bases(&["busybox"]),
    test!(a_damaged_one_is_named).bases(&["busybox"]),
    test!(an_ephemeral_guest_has_volumes).bases(&["busybox"]),
    test!(a_rebuilt_guest_keeps_all_but_its_root).bases(&["busybox"]),
    test!(a_rebuilt_guest_may_get_another_base).bases(&["busybox"]),
    test!(a_killed_rebuild_leaves_a_whole_layer).bases(&["busybox"]),
    test!(a_size_is_said_not_to_be_enforced).bases(&["busybox"]),
];

fn launch(sandbox: &Sandbox, name: &str, volume: &str) {
    launch_idle(sandbox, name, &["-v", volume]);
}

fn remove(sandbox: &Sandbox, name: &str) {
    sandbox.holm(&["rm", "--force", name]).ok();
}

fn a_volume_outlives_its_guest(sandbox: &mut Sandbox) {
    launch(sandbox, "box", "data:/data");
    exec(sandbox, "box", "echo kept > /data/file").ok();
    let removed = sandbox.holm(&["rm", "--force", "box"]).ok();
    assert!(removed.stdout.contains("volume data is kept"), "{removed}");
    // Another guest, perhaps with other ids.
    launch_idle(sandbox, "first", &[]);
    launch(sandbox, "box", "data:/srv");
    let script = "cat /srv/file; stat -c '%u %g' /srv /srv/file";
    assert_eq!(exec(sandbox, "box", script).ok().stdout, "kept\n0 0\n0 0\n");
    remove(sandbox, "first");
    remove(sandbox, "box");
    let listed = sandbox.holm(&["volume", "ls", "-q"]).ok();
    assert_eq!(listed.stdout, "data\n");
    let shown = sandbox.holm(&["volume", "inspect", "data", "--json"]).ok().json();
    assert_eq!((&shown["from_guest"], &shown["from_target"]), (&"box".into(), &"/data".into()));
    let df = sandbox.holm(&["df", "--json"]).ok().json();
    assert!(df["volumes"][0]["used_bytes"].as_u64().expect("bytes") > 0, "{df}");
    sandbox.holm(&["volume", "rm", "data"]).ok();
    assert!(!sandbox.root().join("volumes/data").exists());
}

/// A base as of a package that has made a directory for a user of its own.
fn with_data(dir: &Path) {
    let data = dir.join("var/lib/pg/main");
    fs::create_dir_all(&data).expect("directories");
    fs::write(data.join("PG_VERSION"), "17\n").expect("a file");
    fs::hard_link(data.join("PG_VERSION"), data.join("again")).expect("a link");
    symlink("/etc", data.join("link")).expect("a link");
    for (path, mode) in [("var/lib/pg", 0o750), ("var/lib/pg/main", 0o700)] {
        let path = dir.join(path);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode");
        chown(&path, Some(100), Some(101)).expect("its owner");
    }
    chown(data.join("PG_VERSION"), Some(100), Some(101)).expect("its owner");
    let set = std::process::Command::new("setfattr")
        .args(["-n", "user.kept", "-v", "yes"])
        .arg(data.join("PG_VERSION"))
        .status();
    assert!(set.is_err() || set.is_ok_and(|status| status.success()));
}

fn it_begins_as_the_base_has_it(sandbox: &mut Sandbox) {
    let source = system(sandbox, with_data);
    sandbox.holm(&["base", "import", "odd", &source]).ok();
    let head = ["launch", "box", "--base", "odd", "--net", "none", "-v", "pg:/var/lib/pg"];
    sandbox.holm(&[&head[..], &["--", "/bin/busybox", "sleep", "1000"]].concat()).ok();
    let script = "cd /var/lib/pg; busybox stat -c '%u %g %a' . main main/PG_VERSION
        busybox stat -c %h main/again; busybox readlink main/link; busybox cat main/again";
    let printed = exec(sandbox, "box", script).ok().stdout;
    assert_eq!(printed, "100 101 750\n100 101 700\n100 101 644\n2\n/etc\n17\n");
    // On the disk as in a private layer, whatever the guest's ids are.
    let main = sandbox.root().join("volumes/pg/data/main");
    let on_disk = fs::metadata(&main).expect("copied");
    assert_eq!((on_disk.uid(), on_disk.gid()), (100, 101));
    remove(sandbox, "box");
    // What is there by then is not replaced.
    fs::write(main.join("PG_VERSION"), "18\n").expect("the volume");
    sandbox.holm(&[&head[..], &["--", "/bin/busybox", "sleep", "1000"]].concat()).ok();
    assert_eq!(exec(sandbox, "box", "busybox cat /var/lib/pg/main/again").ok().stdout, "18\n");
    remove(sandbox, "box");
    sandbox.holm(&["volume", "rm", "pg"]).ok();
}

/// Neither guest can change a file that neither has made: what root owns on the host, outside of
/// both id ranges, is nobody's.
fn two_guests_have_it_with_their_own_ids(sandbox: &mut Sandbox) {
    launch(sandbox, "a", "shared:/x");
    launch(sandbox, "b", "shared:/y");
    exec(sandbox, "a", "echo of a > /x/a; chown 7:8 /x/a; chmod 600 /x/a").ok();
    assert_eq!(
        exec(sandbox, "b", "stat -c '%u %g %a' /y/a; cat /y/a").ok().stdout,
        "7 8 600\nof a\n"
    );
    exec(sandbox, "b", "echo of b > /y/b; chmod 4755 /y/b").ok();
    assert_eq!(exec(sandbox, "a", "stat -c '%u %g %a' /x/b").ok().stdout, "0 0 4755\n");
    let file = sandbox.root().join("volumes/shared/data/outside");
    fs::write(&file, "of the host").expect("the volume");
    chown(&file, Some(4_000_000_000), Some(4_000_000_000)).expect("its owner");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("its mode");
    for (guest, path) in [("a", "/x/outside"), ("b", "/y/outside")] {
        let script = format!("cat {path} || echo x > {path} || chown 0 {path} || chmod 666 {path}");
        assert!(!exec(sandbox, guest, &script).status.success(), "{guest}");
    }
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "of the host");
    for guest in ["a", "b"] {
        remove(sandbox, guest);
    }
    sandbox.holm(&["volume", "rm", "shared"]).ok();
}

fn a_read_only_one_and_device_nodes(sandbox: &mut Sandbox) {
    sandbox.holm(&["volume", "create", "data"]).ok();
    let node = sandbox.root().join("volumes/data/data/null");
    let made = std::process::Command::new("mknod").arg(&node).args(["c", "1", "3"]).status();
    assert!(made.expect("mknod").success());
    fs::set_permissions(&node, fs::Permissions::from_mode(0o666)).expect("its mode");
    launch_idle(sandbox, "box", &["-v", "data:/rw", "-v", "data:/ro:ro"]);
    let fails = |script: &str, reason: &str| {
        let outcome = exec(sandbox, "box", script);
        assert!(!outcome.status.success() && outcome.stderr.contains(reason), "{outcome}");
    };
    exec(sandbox, "box", "echo x > /rw/file; cat /ro/file").ok();
    fails("echo y > /ro/file", "Read-only file system");
    fails("mount -o remount,bind,rw /ro; umount /ro; echo y > /ro/file", "Read-only file system");
    fails("echo x > /rw/null", "Permission denied");
    let flags = exec(sandbox, "box", "grep -E ' /r[wo] ' /proc/self/mountinfo").ok().stdout;
    assert!(
        flags.lines().all(|line| line.contains("nodev") && !line.contains("nosuid")),
        "{flags}"
    );
    remove(sandbox, "box");
    sandbox.holm(&["volume", "rm", "data"]).ok();
}

fn one_in_use_is_not_removed(sandbox: &mut Sandbox) {
    launch(sandbox, "box", "data:/data");
    let rm = ["volume", "rm", "data"];
    sandbox.holm(&rm).refused(&["volume data is in use", "guest box, running", "holm stop box"]);
    // Its settings do not name it any more, and it runs on.
    sandbox.holm(&["set", "box", "volumes=[]"]).ok();
    sandbox.holm(&rm).refused(&["guest box, running"]);
    sandbox.holm(&["set", "box", "volumes=data:/data"]).ok();
    sandbox.holm(&["stop", "box"]).ok();
    sandbox.holm(&rm).refused(&["volume data is in use by guest box;", "holm edit box"]);
    let json = sandbox.holm(&["volume", "rm", "data", "--json"]).stdout;
    assert!(json.contains("\"volume-in-use\""), "{json}");
    sandbox.holm(&["set", "box", "volumes=[]"]).ok();
    sandbox.holm(&rm).ok();
    sandbox.holm(&rm).refused(&["there is no volume data"]);
    remove(sandbox, "box");
}

fn a_removed_guest_may_take_its_volumes(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &["-v", "own:/own", "-v", "shared:/shared"]);
    launch(sandbox, "other", "shared:/shared");
    let removed = sandbox.holm(&["rm", "--force", "--volumes", "box", "--json"]).ok().json();
    assert_eq!(removed["removed_volumes"], serde_json::json!(["own"]));
    assert_eq!(removed["kept_volumes"], serde_json::json!(["shared"]));
    assert!(!sandbox.root().join("volumes/own").exists());
    sandbox.holm(&["rm", "--force", "--volumes", "other"]).ok();
    assert!(!sandbox.root().join("volumes/shared").exists());
}

/// A guest leaves links where a volume is to be mounted; then an administrator gives it one.
fn links_at_the_target_lead_nowhere_outside(sandbox: &mut Sandbox) {
    let outside = sandbox.root().join("outside");
    fs::create_dir_all(&outside).expect("a directory");
    fs::write(outside.join("secret"), "of the host").expect("a file");
    launch_idle(sandbox, "box", &[]);
    let script = format!(
        "mkdir /in && echo inside > /in/file; ln -s {0} /a; ln -s ../../../../../..{0} /b
         mkdir /c && ln -s /proc /c/up; ln -s /in /d; ln -s / /e; ln -s loop /loop
         mkdir -p {0}; echo of the guest > {0}/secret; echo > /plain",
        outside.display()
    );
    exec(sandbox, "box", &script).ok();
    sandbox.holm(&["stop", "box"]).ok();
    let data = |name: &str| sandbox.root().join("volumes").join(name).join("data");
    let start_with = |volume: &str| {
        sandbox.holm(&["set", "box", &format!("volumes={volume}")]).ok();
        sandbox.holm(&["start", "box"])
    };
    for target in ["/a", "/b"] {
        start_with(&format!("v:{target}")).ok();
        let copied = fs::read_to_string(data("v").join("secret")).expect("copied");
        assert_eq!(copied, "of the guest\n");
        sandbox.holm(&["stop", "box"]).ok();
        sandbox.holm(&["set", "box", "volumes=[]"]).ok();
        sandbox.holm(&["volume", "rm", "v"]).ok();
    }
    start_with("w:/d").ok();
    assert_eq!(fs::read_to_string(data("w").join("file")).expect("copied"), "inside\n");
    sandbox.holm(&["stop", "box"]).ok();
    // What it is to begin as is not the host's /proc, nor the guest's.
    start_with("x:/c/up/1");
    assert!(!data("x").join("environ").exists());
    sandbox.holm(&["kill", "box"]);
    for (volume, reason) in
        [("y:/loop", "symbolic link"), ("y:/plain", "not a directory"), ("y:/plain/z", "not a dir")]
    {
        start_with(volume).refused(&["y", reason]);
        assert!(!sandbox.root().join("volumes/y").exists());
    }
    assert_eq!(fs::read_to_string(outside.join("secret")).expect("untouched"), "of the host");
    remove(sandbox, "box");
    for volume in ["w", "x"] {
        sandbox.holm(&["volume", "rm", volume]);
    }
}

/// In whatever order they are written.
fn one_below_another(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "box", &["-v", "inner:/data/inner", "-v", "outer:/data"]);
    exec(sandbox, "box", "echo i > /data/inner/file; echo o > /data/file").ok();
    let data = |path: &str| fs::read_to_string(sandbox.root().join("volumes").join(path));
    assert_eq!(data("inner/data/file").expect("the volume"), "i\n");
    assert_eq!(data("outer/data/file").expect("the volume"), "o\n");
    sandbox.holm(&["rm", "--force", "--volumes", "box"]).ok();
}

fn wrong_names_and_targets(sandbox: &mut Sandbox) {
    for name in ["a/b", "..", ".x", ""] {
        sandbox.holm(&["volume", "create", name]).refused(&["cannot be a name"]);
        sandbox.holm(&["volume", "rm", name]).refused(&["cannot be a name"]);
    }
    let create = |setting: &str| {
        let head = ["create", "box", "--base", "busybox", "--set", setting];
        sandbox.holm(&[&head[..], &["--", "sleep", "1"]].concat())
    };
    for (setting, reason) in [
        ("volumes=../a:/data", "not a valid name"),
        ("volumes=a:/", "whole root"),
        ("volumes=a:/dev", "is Holm's"),
        ("volumes=a:/proc/1", "is Holm's"),
        ("volumes=a:data", "not an absolute path"),
        ("volumes=a:/x,b:/x", "same target"),
    ] {
        let outcome = create(setting);
        assert!(!outcome.status.success() && outcome.stderr.contains(reason), "{outcome}");
    }
    let head = ["create", "box", "--base", "busybox", "-v", "/srv:/srv", "-v", "a:/srv/a"];
    sandbox.holm(&[&head[..], &["--", "sleep", "1"]].concat()).rejected(&["would hide it"]);
    sandbox.holm(&["volume", "create", "a"]).ok();
    sandbox.holm(&["volume", "create", "a"]).refused(&["there is already a volume a"]);
    sandbox.holm(&["volume", "inspect", "b"]).refused(&["there is no volume b"]);
    sandbox.holm(&["volume", "rm", "a"]).ok();
    for args in
        [["volume", "create", "a", "--size", "1M"], ["volume", "set", "a", "--size", "much"]]
    {
        let refused = sandbox.holm(&args);
        assert!(refused.code() == 2 && refused.stderr.contains(args[4]), "{refused}");
    }
    sandbox.holm(&["volume", "set", "a", "--size", "1G"]).refused(&["there is no volume a"]);
    assert!(!sandbox.root().join("volumes/a").exists());
}

fn a_killed_copy_is_begun_anew(sandbox: &mut Sandbox) {
    let source = system(sandbox, with_data);
    sandbox.holm(&["base", "import", "odd", &source]).ok();
    let head = ["create", "box", "--base", "odd", "--net", "none", "-v", "pg:/var/lib/pg"];
    sandbox.holm(&[&head[..], &["--", "/bin/busybox", "sleep", "1000"]].concat()).ok();
    let mut start = sandbox.command_with_fault("HOLM_STOP_AT", "volume-copied");
    let mut start = start.args(["start", "box"]).spawn().expect("holm");
    sandbox.wait_for("the copy is made", || is_stopped(start.id()).then_some(()));
    assert!(!sandbox.root().join("volumes/pg").exists(), "half a volume");
    start.kill().expect("our child");
    start.wait().expect("our child");
    assert_eq!(sandbox.holm(&["volume", "ls", "-q"]).ok().stdout, "");
    // As if it had been killed before.
    let tmp = fs::read_dir(sandbox.root().join("tmp")).expect("tmp");
    let begun: Vec<_> = tmp.flatten().map(|entry| entry.path()).collect();
    assert_eq!(begun.len(), 1, "{begun:?}");
    fs::remove_file(begun[0].join("data/main/PG_VERSION")).expect("copied");
    sandbox.holm(&["start", "box"]).ok();
    assert_eq!(exec(sandbox, "box", "busybox cat /var/lib/pg/main/PG_VERSION").ok().stdout, "17\n");
    let left = fs::read_dir(sandbox.root().join("tmp")).expect("tmp").count();
    assert_eq!(left, 0);
    sandbox.holm(&["rm", "--force", "--volumes", "box"]).ok();
}

fn a_killed_removal_is_finished(sandbox: &mut Sandbox) {
    sandbox.holm(&["volume", "create", "data"]).ok();
    let mut rm = sandbox.command_with_fault("HOLM_STOP_AT", "volume-retired");
    let mut rm = rm.args(["volume", "rm", "data"]).spawn().expect("holm");
    sandbox.wait_for("it is renamed", || is_stopped(rm.id()).then_some(()));
    rm.kill().expect("our child");
    rm.wait().expect("our child");
    assert_eq!(sandbox.holm(&["volume", "ls", "-q"]).ok().stdout, "");
    sandbox.holm(&["volume", "create", "data"]).ok();
    let left = fs::read_dir(sandbox.root().join("tmp")).expect("tmp").count();
    assert_eq!(left, 0);
    sandbox.holm(&["volume", "rm", "data"]).ok();
}

/// The mount is of `data` alone.
fn the_guest_reaches_nothing_beside_it(sandbox: &mut Sandbox) {
    launch(sandbox, "box", "data:/data");
    let script = "cd /data/..; ls; ls /data; cat /data/../volume.toml";
    let printed = exec(sandbox, "box", script);
    assert!(!printed.stdout.contains("volume.toml"), "{printed}");
    assert!(printed.stdout.contains("etc"), "{printed}");
    assert!(!printed.status.success(), "{printed}");
    sandbox.holm(&["rm", "--force", "--volumes", "box"]).ok();
}

fn a_damaged_one_is_named(sandbox: &mut Sandbox) {
    sandbox.holm(&["volume", "create", "data"]).ok();
    fs::write(sandbox.root().join("volumes/data/volume.toml"), "created = \"x\"").expect("a file");
    let ls = sandbox.holm(&["volume", "ls"]).ok();
    assert!(ls.stderr.contains("volume data is damaged"), "{ls}");
    let head = ["launch", "box", "--base", "busybox", "--net", "none", "-v", "data:/data"];
    sandbox.holm(&[&head[..], &["--", "sleep", "9"]].concat()).refused(&["data is damaged"]);
    sandbox.holm(&["rm", "--force", "box"]);
    sandbox.holm(&["volume", "rm", "data"]).ok();
}

fn an_ephemeral_guest_has_volumes(sandbox: &mut Sandbox) {
    let run = |script: &str| {
        let head = ["run", "--base", "busybox", "--net", "none", "-v", "data:/etc"];
        sandbox.holm(&[&head[..], &["--", "sh", "-c", script]].concat())
    };
    run("echo kept > /etc/mine").ok();
    assert_eq!(run("cat /etc/mine; ls /etc/passwd").ok().stdout, "kept\n/etc/passwd\n");
    sandbox.holm(&["volume", "rm", "data"]).ok();
}

/// Whatever the root's filesystem is.
fn a_size_is_said_not_to_be_enforced(sandbox: &mut Sandbox) {
    sandbox.holm(&["volume", "create", "data"]).ok();
    let run = |volume: &str| {
        let head = ["run", "--base", "busybox", "--net", "none", "-v", volume, "--", "true"];
        sandbox.holm(&head).ok()
    };
    let said = "volume data: its size limit is not enforced";
    let first = run("data:/data:20G");
    assert!(first.stderr.contains(said), "{first}");
    let without = run("data:/data");
    assert!(!without.stderr.contains(said), "{without}");
    sandbox.holm(&["volume", "set", "data", "--size", "20G"]).ok();
    let limited = run("data:/data:20G");
    assert!(!limited.stderr.contains(said), "{limited}");
    sandbox.holm(&["volume", "rm", "data"]).ok();
}

fn a_rebuilt_guest_keeps_all_but_its_root(sandbox: &mut Sandbox) {
    launch_idle(sandbox, "first", &[]);
    launch(sandbox, "box", "data:/data");
    exec(sandbox, "box", "echo kept > /data/file; echo lost > /etc/file; chmod 700 /").ok();
    let identity = "cat /etc/machine-id /etc/hostname; cat /proc/self/uid_map";
    let before = exec(sandbox, "box", identity).ok().stdout;
    sandbox.holm(&["rebuild", "box"]).refused(&["box is running", "holm rebuild --force"]);
    sandbox.holm(&["set", "box", "protect=true"]).ok();
    sandbox.holm(&["rebuild", "--force", "box"]).refused(&["protected"]);
    sandbox.holm(&["set", "box", "protect=false"]).ok();
    let guest = sandbox.root().join("guests/box");
    for file in ["unify", "digests", "prepared"] {
        fs::write(guest.join(file), "").expect("the guest's directory");
    }
    let rebuilt = sandbox.holm(&["rebuild", "--force", "box", "--json"]).ok().json();
    assert_eq!((&rebuilt["name"], &rebuilt["base"]), (&"box".into(), &"busybox".into()));
    assert_eq!(fs::read_dir(sandbox.root().join("tmp")).expect("tmp").count(), 0);
    for file in ["unify", "digests", "prepared"] {
        assert!(!guest.join(file).exists(), "{file}");
    }
    assert_eq!(fs::read_dir(guest.join("disk/upper")).expect("a layer").count(), 0);
    sandbox.holm(&["start", "box"]).ok();
    assert_eq!(exec(sandbox, "box", identity).ok().stdout, before);
    let look = "cat /data/file; ls /etc/file; stat -c %a /; ls /etc/ssh/.holm-make-host-keys";
    let look = exec(sandbox, "box", look);
    assert_eq!(look.stdout, "kept\n755\n/etc/ssh/.holm-make-host-keys\n", "{look}");
    // Its identity is written once: what it changes itself stays.
    exec(sandbox, "box", "rm /etc/ssh/.holm-make-host-keys").ok();
    sandbox.holm(&["restart", "box"]).ok();
    assert!(!exec(sandbox, "box", "ls /etc/ssh/.holm-make-host-keys").status.success());
    remove(sandbox, "first");
    sandbox.holm(&["rm", "--force", "--volumes", "box"]).ok();
}

fn a_rebuilt_guest_may_get_another_base(sandbox: &mut Sandbox) {
    sandbox.share("busybox", "other").expect("a second base");
    sandbox.holm(&["create", "box", "--base", "busybox", "--", "sleep", "100000"]).ok();
    sandbox.holm(&["rebuild", "box", "--base", "missing"]).refused(&["no base named missing"]);
    sandbox.holm(&["rebuild", "box", "--base", "other"]).ok();
    let base = sandbox.holm(&["inspect", "box", "base"]).ok();
    assert!(base.stdout.contains("other"), "{base}");
    sandbox.holm(&["start", "box"]).ok();
    remove(sandbox, "box");
}

fn a_killed_rebuild_leaves_a_whole_layer(sandbox: &mut Sandbox) {
    sandbox.share("busybox", "other").expect("a second base");
    for (step, file) in [("rebuild-made", "lost\n"), ("rebuilt", "")] {
        launch_idle(sandbox, "box", &[]);
        exec(sandbox, "box", "echo lost > /etc/file; rm /etc/ssh/.holm-make-host-keys").ok();
        sandbox.holm(&["stop", "box"]).ok();
        let mut rebuild = sandbox.command_with_fault("HOLM_STOP_AT", step);
        let mut rebuild =
            rebuild.args(["rebuild", "box", "--base", "other"]).spawn().expect("holm");
        sandbox.wait_for("it stops", || is_stopped(rebuild.id()).then_some(()));
        rebuild.kill().expect("our child");
        rebuild.wait().expect("our child");
        sandbox.holm(&["start", "box"]).ok();
        let found = exec(sandbox, "box", "cat /etc/file 2>/dev/null; cat /etc/hostname");
        assert_eq!(found.ok().stdout, format!("{file}box\n"), "{step}");
        // A layer that stays keeps its keys.
        let keys = exec(sandbox, "box", "ls /etc/ssh/.holm-make-host-keys");
        assert_eq!(keys.status.success(), file.is_empty(), "{keys}");
        sandbox.holm(&["rebuild", "--force", "box", "--base", "other"]).ok();
        assert_eq!(fs::read_dir(sandbox.root().join("tmp")).expect("tmp").count(), 0);
        let base = sandbox.holm(&["inspect", "box", "base"]).ok();
        assert!(base.stdout.contains("other"), "{base}");
        remove(sandbox, "box");
    }
}
