//! A Holm root on a filesystem of its own.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::process::Command;

use holm_sys::loop_device;
use holm_sys::project::{self, Usage};

use crate::guest::exec;
use crate::sandbox::{Sandbox, skip};
use crate::source::system;

/// A filesystem, by what limits a private layer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// ext4 without quota: a disk image.
    Plain,
    /// ext4 with project quota and fs-verity.
    Ext4,
    /// XFS with project quota.
    Xfs,
    /// btrfs: a disk image, and files can be cloned.
    Btrfs,
}

impl Kind {
    pub fn has_quota(self) -> bool {
        matches!(self, Self::Ext4 | Self::Xfs)
    }

    fn make(self, sandbox: &Sandbox, image: &str) {
        let (program, args): (_, &[&str]) = match self {
            Self::Plain => ("mkfs.ext4", &["-q", "-F"]),
            Self::Ext4 => ("mkfs.ext4", &["-q", "-F", "-O", "project,quota,verity"]),
            Self::Xfs => ("mkfs.xfs", &["-q", "-f"]),
            Self::Btrfs => ("mkfs.btrfs", &["-q", "-f"]),
        };
        run(sandbox, program, &[args, &[image]].concat());
    }
}

/// What guests on it have of busybox beside a shell.
const PROGRAMS: [&str; 12] =
    ["cat", "cmp", "dd", "df", "ln", "mv", "rm", "chattr", "sync", "ls", "tail", "fallocate"];

/// Does `work` with the sandbox's root on a filesystem of its own, on which base `own` is.
pub fn on(kind: Kind, sandbox: &mut Sandbox, work: impl FnOnce(&Sandbox)) {
    let root = sandbox.root().to_owned();
    let image = root.with_extension("img");
    File::create(&image).and_then(|file| file.set_len(600 << 20)).expect("a file");
    let (file, at) = (image.to_string_lossy().into_owned(), root.to_string_lossy().into_owned());
    for (wanted, program) in [(Kind::Xfs, "/sbin/mkfs.xfs"), (Kind::Btrfs, "/sbin/mkfs.btrfs")] {
        if kind == wanted && !Path::new(program).exists() {
            std::fs::remove_file(&image).expect("the image goes");
            skip(&format!("{program} is not here"));
        }
    }
    kind.make(sandbox, &file);
    let options = if kind.has_quota() { "loop,prjquota" } else { "loop" };
    let mounted = sandbox.run(Command::new("mount").args(["-o", options, &file, &at]));
    if !mounted.status.success() {
        std::fs::remove_file(&image).expect("the image goes");
        assert!(kind.has_quota(), "{mounted}");
        skip("this kernel has no project quota");
    }
    std::fs::create_dir(root.join("bases")).expect("what makes it a root");
    let result = catch_unwind(AssertUnwindSafe(|| {
        let source = system(sandbox, |dir| {
            for name in PROGRAMS {
                std::os::unix::fs::symlink("busybox", dir.join("bin").join(name)).expect("a link");
            }
        });
        sandbox.holm(&["base", "import", "own", &source]).ok();
        work(sandbox);
    }));
    let _ = sandbox.holm(&["kill", "--all"]);
    // While the root is not there its number is free, and another test may take it before this one
    // cleans up.
    if result.is_ok() {
        sandbox.wait_for("the number is released", || {
            sandbox.holm(&["release"]).status.success().then_some(())
        });
    } else {
        let _ = sandbox.holm(&["release"]);
    }
    // The mounts and the loop devices of guests go a moment after them.
    sandbox.wait_for("the filesystem can be unmounted", || {
        let done = sandbox.run(Command::new("umount").arg(&at));
        done.status.success().then_some(())
    });
    std::fs::remove_file(&image).expect("the image goes");
    if let Err(panic) = result {
        resume_unwind(panic);
    }
}

pub fn run(sandbox: &Sandbox, program: &str, args: &[&str]) {
    sandbox.run(Command::new(program).args(args)).ok();
}

/// Launches a guest that does nothing, with these settings.
pub fn launch(sandbox: &Sandbox, name: &str, settings: &[&str]) {
    let mut args = vec!["launch", name, "--base", "own", "--net", "none"];
    args.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    args.extend(["--", "sleep", "100000"]);
    sandbox.holm(&args).ok();
}

/// A script in a guest that must fail.
pub fn fails(sandbox: &Sandbox, name: &str, script: &str) {
    let outcome = exec(sandbox, name, script);
    assert_ne!(outcome.code(), 0, "{outcome}");
}

/// The first number that a script in a guest prints.
pub fn number(sandbox: &Sandbox, name: &str, script: &str) -> u64 {
    let outcome = exec(sandbox, name, script);
    let number = outcome.stdout.split_whitespace().next().and_then(|word| word.parse().ok());
    number.unwrap_or_else(|| panic!("{script}: {outcome}"))
}

/// How many KiB the guest's disk has, as `df` says inside.
pub fn size(sandbox: &Sandbox, name: &str) -> u64 {
    number(sandbox, name, "set -- $(df -k / | tail -n 1); echo $2")
}

/// Writes a file until there is no room; the mebibytes that it got.
pub fn fill(sandbox: &Sandbox, name: &str, file: &str) -> u64 {
    let script = format!(
        "dd if=/dev/zero of={file} bs=64k count=4096; \
         set -- $(ls -l {file}); echo $5"
    );
    let outcome = exec(sandbox, name, &script);
    let full = ["No space left on device", "quota exceeded"];
    assert!(full.iter().any(|words| outcome.stderr.contains(words)), "{outcome}");
    outcome.stdout.trim().parse::<u64>().unwrap_or_else(|_| panic!("{outcome}")) >> 20
}

/// What the project of a guest uses, by its recorded context id.
pub fn quota(sandbox: &Sandbox, context: u32) -> Usage {
    let instance = sandbox.instance().expect("an instance number");
    usage(sandbox.root(), (instance << 26) + context * 65536)
}

/// Waits until the quota is as `wanted` has it: XFS frees the blocks of removed files in the
/// background, and says so later.
#[track_caller]
pub fn settles(sandbox: &Sandbox, context: u32, wanted: impl Fn(&Usage) -> bool) -> Usage {
    let mut last = Usage::default();
    let settled = sandbox.poll_until_limit(|| {
        last = quota(sandbox, context);
        wanted(&last).then_some(last)
    });
    settled.unwrap_or_else(|| panic!("{last:?} are still charged"))
}

pub fn usage(path: &Path, id: u32) -> Usage {
    let file = File::open(path).expect("the root");
    project::usage(file.as_fd(), id).expect("its quota")
}

/// How many loop devices there are on files of the root's filesystem.
pub fn loop_devices(sandbox: &Sandbox) -> usize {
    let filesystem = std::fs::metadata(sandbox.root()).expect("the root").dev();
    let devices = std::fs::read_dir("/sys/block").expect("/sys").flatten();
    let bound = devices.filter(|device| device.path().join("loop/backing_file").exists());
    bound
        .filter(|device| {
            let file = File::open(Path::new("/dev").join(device.file_name()));
            file.and_then(|file| loop_device::bound_to(file.as_fd()))
                .is_ok_and(|(device, _)| device == filesystem)
        })
        .count()
}
