//! Filesystems that cannot hold a Holm root, because no overlay can use them.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;

use crate::guest::idle;
use crate::sandbox::{Sandbox, skip};
use crate::test::{Test, test};
use crate::traces::changes_nothing;

pub const TESTS: &[Test] = &[
    test!(a_root_on_an_overlay),
    test!(a_root_on_tmpfs),
    test!(a_root_on_fat),
    test!(a_guest_moved_to_an_unsupported_root).bases(&["busybox"]),
];

fn run(sandbox: &Sandbox, program: &str, args: &[&str]) {
    sandbox.run(Command::new(program).args(args)).ok();
}

/// Does `work` while another filesystem is mounted over the sandbox's root.
fn covered(
    sandbox: &mut Sandbox,
    [kind, options, source]: [&str; 3],
    work: impl FnOnce(&mut Sandbox),
) {
    let at = sandbox.root().to_string_lossy().into_owned();
    run(sandbox, "mount", &["-t", kind, "-o", options, source, &at]);
    let result = catch_unwind(AssertUnwindSafe(|| work(sandbox)));
    run(sandbox, "umount", &[&at]);
    if let Err(panic) = result {
        resume_unwind(panic);
    }
}

/// doctor, create and run name the filesystem and the remedy, and leave nothing.
fn is_refused(sandbox: &mut Sandbox, kind: &str, why: &str) {
    let place = format!("{kind} at {}", sandbox.root().display());
    let at = sandbox.root().display().to_string();
    let message = [why, &at, "ext4, XFS or btrfs", "--root"];
    let doctor = sandbox.holm(&["doctor", "filesystem"]);
    assert_eq!(doctor.code(), 1, "{doctor}");
    for part in ["missing", &place, "No guest can run here without: filesystem"] {
        assert!(doctor.stdout.contains(part), "{doctor}");
    }
    changes_nothing(sandbox, |sandbox| {
        let rest = ["--base", "any", "--net", "none", "--", "sleep", "9"];
        for verb in [&["create", "box"][..], &["launch", "box"], &["run"]] {
            sandbox.holm(&[verb, &rest].concat()).refused(&message);
        }
    });
}

/// As in a container, whose root usually is an overlay.
fn a_root_on_an_overlay(sandbox: &mut Sandbox) {
    let [lower, upper, work] = directories(sandbox, ["lower", "upper", "work"]);
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let why = "the Holm root is on an unsupported filesystem";
    covered(sandbox, ["overlay", &options, "layers"], |sandbox| {
        is_refused(sandbox, "overlay", why);
    });
}

fn a_root_on_tmpfs(sandbox: &mut Sandbox) {
    let mount = ["tmpfs", "size=16m,mode=700", "memory"];
    let why = "the Holm root is on an unsupported filesystem";
    covered(sandbox, mount, |sandbox| is_refused(sandbox, "tmpfs", why));
}

fn a_root_on_fat(sandbox: &mut Sandbox) {
    let image = sandbox.root().join("fat.img");
    std::fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("a file");
    let image = image.to_string_lossy().into_owned();
    run(sandbox, "busybox", &["mkdosfs", &image]);
    let known = std::fs::read_to_string("/proc/filesystems").expect("a kernel");
    let loaded = || Command::new("modprobe").arg("vfat").status().is_ok_and(|s| s.success());
    if !known.contains("\tvfat\n") && !loaded() {
        skip("this kernel has no vfat");
    }
    // It keeps no modes, so it is refused before anybody asks what it lacks.
    let why = "other users of the host can read what is in the Holm root";
    covered(sandbox, ["vfat", "loop", &image], |sandbox| is_refused(sandbox, "vfat", why));
}

/// The whole root is covered by an overlay of itself: the guest is unchanged, and starts when that
/// is unmounted.
fn a_guest_moved_to_an_unsupported_root(sandbox: &mut Sandbox) {
    idle(sandbox, "create", "box");
    let place = format!("overlay at {}", sandbox.root().display());
    let root = sandbox.root().to_string_lossy().into_owned();
    let side = sandbox.root().with_extension("side");
    let [upper, work] = ["upper", "work"].map(|name| side.join(name));
    for directory in [&upper, &work] {
        std::fs::create_dir_all(directory).expect("a directory");
    }
    let options =
        format!("lowerdir={root},upperdir={},workdir={}", upper.display(), work.display());
    let result = catch_unwind(AssertUnwindSafe(|| {
        covered(sandbox, ["overlay", &options, "all"], |sandbox| {
            let message = ["the Holm root", &place, "ext4, XFS or btrfs", "--root"];
            sandbox.holm(&["start", "box"]).refused(&message);
            let wrote = std::fs::read_dir(upper.join("guests/box")).into_iter().flatten().flatten();
            let wrote: Vec<_> = wrote.map(|entry| entry.file_name()).collect();
            assert!(wrote.is_empty(), "the refused start wrote {wrote:?}");
        });
    }));
    std::fs::remove_dir_all(&side).expect("the layers go");
    if let Err(panic) = result {
        resume_unwind(panic);
    }
    sandbox.holm(&["start", "box"]).ok();
    sandbox.holm(&["rm", "--force", "box"]).ok();
}

fn directories<const N: usize>(sandbox: &Sandbox, names: [&str; N]) -> [String; N] {
    names.map(|name| {
        let path = sandbox.root().join(name);
        std::fs::create_dir(&path).expect("a directory");
        path.to_string_lossy().into_owned()
    })
}
