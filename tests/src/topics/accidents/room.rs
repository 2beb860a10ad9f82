//! Something has run out: disk, memory, ports, ids.

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use crate::command::Outcome;
use crate::guest::{exec, idle};
use crate::host::free_port;
use crate::sandbox::Sandbox;
use crate::source::system;
use crate::test::{Test, test};
use crate::traces::changes_nothing;

pub const TESTS: &[Test] = &[
    test!(no_user_ids_left).bases(&["busybox"]),
    test!(ids_of_killed_runs_come_back).bases(&["busybox"]),
    test!(memory_too_small_to_start).bases(&["busybox"]),
    test!(a_port_of_another_guest).bases(&["busybox"]),
    test!(disk_full),
    test!(disk_read_only),
];

/// Context ids stand for user ids and for addresses: both are gone at once.
fn no_user_ids_left(sandbox: &mut Sandbox) {
    sandbox.holm(&["run", "--base", "busybox", "--net", "none", "--", "true"]).ok();
    let many = sandbox.root().join("guests/many");
    std::fs::create_dir(&many).expect("the guest that has them all");
    let ids = take_all_ids(sandbox, "../guests/many");
    changes_nothing(sandbox, |sandbox| {
        let message = ["no id range is left", "1023", "holm rm", "--root"];
        sandbox.holm(&["create", "box", "--base", "busybox"]).refused(&message);
        sandbox.holm(&["run", "--base", "busybox", "--", "true"]).refused(&message);
    });
    std::fs::remove_file(ids.join("77")).expect("one is given back");
    idle(sandbox, "create", "box");
    let id = std::fs::read_to_string(sandbox.root().join("guests/box/id")).expect("its ids");
    assert_eq!(id, "77 65536\n");
    sandbox.holm(&["rm", "box"]).ok();
    std::fs::remove_dir(&many).expect("it goes");
}

/// Killed runs use up no ids, even if nobody calls `holm ls`.
fn ids_of_killed_runs_come_back(sandbox: &mut Sandbox) {
    sandbox.holm(&["run", "--base", "busybox", "--net", "none", "--", "true"]).ok();
    for verb in [&["run"][..], &["create", "box"]] {
        let ids = take_all_ids(sandbox, "../run/killed");
        for link in std::fs::read_dir(ids).expect("links").flatten() {
            let old = Timespec { tv_sec: 0, tv_nsec: 0 };
            let times = Timestamps { last_access: old, last_modification: old };
            utimensat(CWD, link.path(), &times, AtFlags::SYMLINK_NOFOLLOW).expect("its time");
        }
        let rest = ["--base", "busybox", "--net", "none", "--", "true"];
        sandbox.holm(&[verb, &rest].concat()).ok();
    }
    sandbox.holm(&["rm", "box"]).ok();
}

fn take_all_ids(sandbox: &Sandbox, owner: &str) -> PathBuf {
    let ids = sandbox.root().join("ids");
    for id in 1..=1023 {
        symlink(owner, ids.join(id.to_string())).expect("a link");
    }
    ids
}

fn memory_too_small_to_start(sandbox: &mut Sandbox) {
    changes_nothing(sandbox, |sandbox| {
        for size in ["4K", "64K", "512K"] {
            let message = ["memory.limit", "too small", "1M"];
            for verb in [&["create", "box"][..], &["run"]] {
                let rest = ["--base", "busybox", "--net", "none", "-m", size, "--", "true"];
                sandbox.holm(&[verb, &rest].concat()).refused(&message);
            }
        }
        // The lowest accepted limit: it starts, or says why not.
        let run = ["run", "--base", "busybox", "--net", "none", "-m", "1M", "--", "true"];
        let outcome = sandbox.holm(&run);
        if !outcome.status.success() {
            assert!(outcome.stderr.contains("memory"), "{outcome}");
        }
    });
}

fn a_port_of_another_guest(sandbox: &mut Sandbox) {
    let port = free_port().to_string();
    let publish = format!("{port}:80");
    let launch = |name| {
        let args = ["launch", name, "--base", "busybox", "-p", &publish, "--", "sleep", "9999"];
        sandbox.holm(&args)
    };
    launch("one").ok();
    let message = [port.as_str(), "guest one", "another port", "stop that guest"];
    launch("two").refused(&message);
    exec(sandbox, "one", "true").ok();
    let _ = sandbox.holm(&["rm", "two"]);
    let run = ["run", "--base", "busybox", "-p", &publish, "--", "true"];
    sandbox.holm(&run).refused(&message);
    sandbox.holm(&["stop", "one"]).ok();
    sandbox.holm(&["rm", "one"]).ok();
    // Taken by a process of the host.
    let _taken = TcpListener::bind(("0.0.0.0", port.parse().expect("a port"))).expect("it is free");
    sandbox.holm(&run).refused(&[&port, "another port"]);
}

/// Does `work` with the sandbox's root on a small filesystem of its own, on which base `own` is.
fn on_a_small_disk(sandbox: &mut Sandbox, work: impl FnOnce(&Sandbox, &Path)) {
    let root = sandbox.root().to_owned();
    let image = root.with_extension("img");
    let file = std::fs::File::create(&image).expect("a file");
    file.set_len(24 << 20).expect("its size");
    drop(file);
    let (image, at) = (image.to_string_lossy().into_owned(), root.to_string_lossy().into_owned());
    run(sandbox, "mkfs.ext4", &["-q", "-m", "0", "-N", "2000", &image]);
    run(sandbox, "mount", &["-o", "loop", &image, &at]);
    std::fs::create_dir(root.join("bases")).expect("what makes it a root");
    let source = system(sandbox, |_| {});
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        sandbox.holm(&["base", "import", "own", &source]).ok();
        work(sandbox, &root);
    }));
    let _ = sandbox.holm(&["kill", "--all"]);
    // While the root is not there its number is free, and another test may take it before this one
    // cleans up.
    let _ = sandbox.holm(&["release"]);
    run(sandbox, "umount", &[&at]);
    std::fs::remove_file(&image).expect("the image goes");
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

fn run(sandbox: &Sandbox, program: &str, args: &[&str]) {
    sandbox.run(std::process::Command::new(program).args(args)).ok();
}

const CREATE: [&str; 9] =
    ["create", "box", "--base", "own", "--net", "none", "--", "/bin/sleep", "99"];

/// What a first start writes beside the private layer is there.
fn created_and_run_once(sandbox: &Sandbox) {
    sandbox.holm(&CREATE).ok();
    sandbox.holm(&["start", "box"]).ok();
    sandbox.holm(&["kill", "box"]).ok();
}

/// The disk is the reason, and not the kernel.
#[track_caller]
fn names_the_disk(outcome: Outcome, parts: &[&str]) {
    let outcome = outcome.refused(parts);
    for other in ["lacks", "erofs", "modprobe"] {
        assert!(!outcome.stderr.contains(other), "{other} has nothing to do with it\n{outcome}");
    }
}

/// A root that is full at create, at start, at restart and at the end.
fn disk_full(sandbox: &mut Sandbox) {
    on_a_small_disk(sandbox, |sandbox, root| {
        let at = root.to_string_lossy().into_owned();
        let holm = |args: &[&str]| sandbox.holm(args);
        created_and_run_once(sandbox);
        let key = "ssh.keys+=ssh-ed25519 AAAAC3NzaC1lZDI1 one@here";
        holm(&["set", "box", key]).ok();
        fill(root);
        let full = ["create", "two", "--base", "own", "--net", "none", "--", "/bin/sleep", "99"];
        names_the_disk(holm(&full), &["No space left", &at]);
        let coded = holm(&[&["--json"], &full[..]].concat());
        assert!(coded.stdout.contains("\"storage-full\""), "{coded}");
        names_the_disk(holm(&["start", "box"]), &["No space left", &at]);
        let doctor = holm(&["doctor"]);
        assert_eq!(doctor.code(), 1, "{doctor}");
        let missing = "No guest can run here without: storage\n";
        assert!(doctor.stdout.contains(missing), "{doctor}");
        holm(&["ls"]).ok();
        holm(&["rm", "--force", "box"]).ok();
        std::fs::remove_file(root.join("filler")).expect("room again");
        // Full when a guest ends: how it ended cannot be recorded.
        holm(&CREATE).ok();
        holm(&["start", "box"]).ok();
        fill(root);
        names_the_disk(holm(&["restart", "box"]), &["runs on", "No space left", &at, "make room"]);
        holm(&["kill", "box"]).ok();
        holm(&["ls"]).ok();
        holm(&["rm", "box"]).ok();
        std::fs::remove_file(root.join("filler")).expect("room again");
        holm(&CREATE).ok();
        holm(&["start", "box"]).ok();
        holm(&["rm", "--force", "box"]).ok();
        let names =
            |directory: &str| std::fs::read_dir(root.join(directory)).expect("a directory").count();
        assert_eq!((names("guests"), names("ids"), names("tmp")), (0, 0, 0), "nothing is left");
    });
}

/// As the kernel leaves a filesystem that has errors.
fn disk_read_only(sandbox: &mut Sandbox) {
    on_a_small_disk(sandbox, |sandbox, root| {
        let at = root.to_string_lossy().into_owned();
        created_and_run_once(sandbox);
        run(sandbox, "mount", &["-o", "remount,ro", &at]);
        let ephemeral = ["run", "--base", "own", "--net", "none", "--", "/bin/sleep", "0"];
        for args in [
            &["start", "box"][..],
            &ephemeral,
            &CREATE.map(|it| it.replace("box", "two")).each_ref().map(String::as_str),
        ] {
            names_the_disk(sandbox.holm(args), &["Read-only file system", &at]);
        }
        run(sandbox, "mount", &["-o", "remount,rw", &at]);
        sandbox.holm(&["start", "box"]).ok();
        sandbox.holm(&["rm", "--force", "box"]).ok();
    });
}

/// Fills a filesystem to the last byte.
fn fill(root: &Path) {
    use std::io::Write;
    let mut file = std::fs::File::create(root.join("filler")).expect("a file");
    for size in [1 << 20, 4096, 1] {
        while file.write_all(&vec![1_u8; size]).is_ok() {}
    }
}
