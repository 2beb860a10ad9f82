//! A base preserves everything of its source.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, ioctl_ficlone, makedev, mknodat};

use super::listing::{Entry, Listing, assert_same, list};
use super::{odd, tool, view, work};
use crate::sandbox::{Sandbox, skip};
use crate::test::{Test, test};

pub const TESTS: &[Test] = &[
    test!(a_directory),
    test!(tars),
    test!(tar_on_standard_input),
    test!(holes_in_every_kind_of_tar),
    test!(zeros_take_no_space),
    test!(a_file_above_4_gib),
    test!(mountpoints_are_empty),
    test!(device_nodes_in_dev_are_left_out),
    test!(busybox),
    test!(debian).bases(&["debian13"]),
];

/// What the base of an odd tree must look like.
fn expected(source: &Path) -> Listing {
    let mut listing = list(source);
    let entry = listing.get_mut(Path::new("attributes/capable in a namespace")).unwrap();
    let capability = entry.xattrs.get_mut(&OsString::from("security.capability")).unwrap();
    assert_eq!(capability.len(), 24, "the kernel keeps the namespace's root");
    *capability = odd::CAPABILITY.to_vec();
    listing
}

fn a_directory(sandbox: &mut Sandbox) {
    let source = work(sandbox).join("odd");
    odd::make(&source);
    sandbox.holm(&["base", "import", "odd", source.to_str().unwrap()]).ok();
    let want = expected(&source);
    assert_same(&want, &view::with(sandbox.root(), "odd", list));
    let printed = sandbox.holm(&["base", "inspect", "odd", "--json"]).ok().json();
    assert_eq!(printed["files"], want.len() as u64 - 1, "{printed}");
    // The holes took no space.
    let used: u64 = super::objects(sandbox.root())
        .iter()
        .map(|o| fs::metadata(o).unwrap().blocks() * 512)
        .sum();
    assert!(used < 10 << 20, "{used} bytes");
    for object in super::objects(sandbox.root()) {
        assert_eq!(fs::metadata(object).unwrap().mode(), 0o100_444);
    }
}

/// The same through GNU tar, which writes a fifo with two names as two fifos.
fn expected_of_tar(source: &Path) -> Listing {
    let mut listing = expected(source);
    for fifo in ["links/fifo", "links/fifo too"] {
        listing.get_mut(Path::new(fifo)).unwrap().names = None;
    }
    listing
}

const TAR: [&str; 7] = [
    "--xattrs",
    "--xattrs-include=*",
    "--acls",
    "--sparse",
    "--numeric-owner",
    "--format=posix",
    "-C",
];

fn tars(sandbox: &mut Sandbox) {
    let dir = work(sandbox);
    let (source, plain) = (dir.join("odd"), dir.join("odd.tar"));
    odd::make(&source);
    let (from, to) = (source.to_str().unwrap(), plain.to_str().unwrap());
    tool(sandbox, "tar", &[&["--create", "--file", to], &TAR[..], &[from, "."]].concat());
    let want = expected_of_tar(&source);
    for (ending, program) in [("", ""), (".gz", "gzip"), (".xz", "xz"), (".zst", "zstd")] {
        let file = format!("{to}{ending}");
        let name = format!("odd{ending}");
        if !program.is_empty() {
            let packed = Command::new(program).args(["-1", "-c", to]).output();
            let Ok(packed) = packed else { continue }; // not everywhere, and on the host all are
            fs::write(&file, packed.stdout).unwrap();
        }
        sandbox.holm(&["base", "import", &name, &file]).ok();
        assert_same(&want, &view::with(sandbox.root(), &name, list));
    }
    let printed = sandbox.holm(&["base", "ls", "--json"]).ok().json();
    let all = printed.as_array().unwrap();
    assert!(all.len() >= 2, "{printed}");
    for base in all {
        assert_eq!(base["own_bytes"], 0, "equal bases share all: {printed}");
    }
}

fn tar_on_standard_input(sandbox: &mut Sandbox) {
    let dir = work(sandbox);
    let source = dir.join("odd");
    odd::make(&source);
    let mut tar = Command::new("tar");
    tar.args(["--create", "--gzip"]).args(TAR).args([source.to_str().unwrap(), "."]);
    let mut tar = tar.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut holm = sandbox.command();
    holm.args(["base", "import", "odd", "-"]).stdin(tar.stdout.take().unwrap());
    let outcome = holm.output().unwrap();
    tar.wait().unwrap();
    assert!(outcome.status.success(), "{outcome:?}");
    assert_same(&expected_of_tar(&source), &view::with(sandbox.root(), "odd", list));
}

fn holes_in_every_kind_of_tar(sandbox: &mut Sandbox) {
    let dir = work(sandbox);
    let source = dir.join("tree");
    fs::create_dir(&source).unwrap();
    odd::holes(&source.join("holes"));
    File::create(source.join("only a hole")).unwrap().set_len(7_000_001).unwrap();
    fs::write(source.join("none"), "n".repeat(5000)).unwrap();
    let contents = |listing: Listing| -> BTreeMap<_, _> {
        listing.into_iter().map(|(path, entry): (_, Entry)| (path, entry.content)).collect()
    };
    let want = contents(list(&source));
    for format in [
        "--format=gnu",
        "--format=oldgnu",
        "--sparse-version=0.0",
        "--sparse-version=0.1",
        "--sparse-version=1.0",
    ] {
        let kind = if format.starts_with("--format") { "--sparse" } else { "--format=posix" };
        let file = dir.join("tree.tar");
        let (to, from) = (file.to_str().unwrap(), source.to_str().unwrap());
        tool(
            sandbox,
            "tar",
            &["--create", "--file", to, "--sparse", kind, format, "-C", from, "."],
        );
        assert!(file.metadata().unwrap().len() < 1 << 20, "{format}: this tar has no holes");
        let name = format.rsplit(['=', '-']).next().unwrap();
        sandbox.holm(&["base", "import", name, to]).ok();
        assert_eq!(contents(view::with(sandbox.root(), name, list)), want, "{format}");
    }
    let used: u64 = super::objects(sandbox.root())
        .iter()
        .map(|o| fs::metadata(o).unwrap().blocks() * 512)
        .sum();
    assert!(used < 1 << 20, "{used} bytes for the same few pieces");
}

/// Zeros that the source stores, as a disk image copied without care: they become holes.
fn zeros_take_no_space(sandbox: &mut Sandbox) {
    let dir = work(sandbox);
    let source = dir.join("tree");
    fs::create_dir(&source).unwrap();
    // Not at the border of a block, nor of the importer's buffer.
    let bytes = [&[b'x'; 5000][..], &vec![0; 7_000_001], &[b'y'; 3], &vec![0; 300_000]].concat();
    fs::write(source.join("dense"), &bytes).unwrap();
    let stored = fs::metadata(source.join("dense")).unwrap().blocks() * 512;
    assert!(stored >= 7_000_000, "the source has no holes: {stored} bytes");
    let tar = dir.join("tree.tar");
    let (from, to) = (source.to_str().unwrap(), tar.to_str().unwrap());
    tool(sandbox, "tar", &["--create", "--file", to, "-C", from, "."]);
    for (name, given) in [("directory", from), ("tar", to)] {
        sandbox.holm(&["base", "import", name, given]).ok();
        let kept = view::with(sandbox.root(), name, |tree| fs::read(tree.join("dense")).unwrap());
        assert!(kept == bytes, "{name}: other bytes");
        let [object] = super::objects(sandbox.root()).try_into().unwrap();
        let used = fs::metadata(object).unwrap().blocks() * 512;
        // A clone takes no room beside its source, zeros or not.
        let shared = name == "directory" && clones(&dir);
        assert!(shared || used <= 64 << 10, "{name}: {used} bytes");
        sandbox.holm(&["base", "rm", name]).ok();
    }
}

/// Whether the filesystem of a directory can clone files.
fn clones(dir: &Path) -> bool {
    let [from, to] = ["from", "to"].map(|name| dir.join(name));
    fs::write(&from, "data").unwrap();
    ioctl_ficlone(File::create(to).unwrap(), File::open(from).unwrap()).is_ok()
}

fn a_file_above_4_gib(sandbox: &mut Sandbox) {
    const SIZE: u64 = (5 << 30) + 1;
    let source = work(sandbox).join("big");
    fs::create_dir(&source).unwrap();
    let file = File::create(source.join("file")).unwrap();
    for at in [0, (4 << 30) - 3, SIZE - 6] {
        file.write_all_at(b"data!\n", at).unwrap();
    }
    sandbox.holm(&["base", "import", "big", source.to_str().unwrap()]).ok();
    view::with(sandbox.root(), "big", |tree| {
        let file = File::open(tree.join("file")).unwrap();
        assert_eq!(file.metadata().unwrap().len(), SIZE);
        for at in [0, (4 << 30) - 3, SIZE - 6] {
            let mut data = [0; 6];
            file.read_exact_at(&mut data, at).unwrap();
            assert_eq!(&data, b"data!\n", "at {at}");
        }
    });
    let [object] = super::objects(sandbox.root()).try_into().unwrap();
    let used = fs::metadata(object).unwrap().blocks() * 512;
    assert!(used < 1 << 20, "{used} bytes for three pieces");
}

/// Filesystems mounted in the source are not imported; their mount points are empty directories.
fn mountpoints_are_empty(sandbox: &mut Sandbox) {
    let source = work(sandbox).join("tree");
    fs::create_dir_all(source.join("mounted")).unwrap();
    fs::write(source.join("file"), "").unwrap();
    view::private(|| {
        view::mount("tmpfs", &[("mode", "0700".into())], &source.join("mounted"));
        fs::write(source.join("mounted/secret"), "").unwrap();
        sandbox.holm(&["base", "import", "tree", source.to_str().unwrap()]).ok();
    });
    let listing = view::with(sandbox.root(), "tree", list);
    let paths: Vec<_> = listing.keys().map(|p| p.to_str().unwrap()).collect();
    assert_eq!(paths, ["", "file", "mounted"]);
}

/// As mmdebstrap leaves them, in a directory and in a tar.
fn device_nodes_in_dev_are_left_out(sandbox: &mut Sandbox) {
    let source = work(sandbox).join("tree");
    fs::create_dir_all(source.join("dev/pts")).unwrap();
    fs::write(source.join("file"), "").unwrap();
    std::os::unix::fs::symlink("/proc/self/fd", source.join("dev/fd")).unwrap();
    for (name, minor) in [("null", 3), ("pts/ptmx", 2)] {
        let (path, mode) = (source.join("dev").join(name), Mode::from_raw_mode(0o666));
        mknodat(CWD, path, FileType::CharacterDevice, mode, makedev(1, minor)).unwrap();
    }
    let tar = work(sandbox).join("tree.tar").display().to_string();
    let source = source.to_str().unwrap();
    tool(sandbox, "tar", &["--create", "--file", &tar, "-C", source, "."]);
    for (name, from) in [("directory", source), ("archive", &tar)] {
        let said = sandbox.holm(&["base", "import", name, from]).ok().stderr;
        assert!(said.contains("2 device nodes in /dev left out"), "{said}");
        let listing = view::with(sandbox.root(), name, list);
        let paths: Vec<_> = listing.keys().map(|p| p.to_str().unwrap()).collect();
        assert_eq!(paths, ["", "dev", "dev/fd", "dev/pts", "file"]);
    }
}

fn busybox(sandbox: &mut Sandbox) {
    sandbox.holm(&["base", "import", "bb", "busybox"]).ok();
    view::with(sandbox.root(), "bb", |tree| {
        let mut chroot = Command::new("chroot");
        chroot.arg(tree).args(["/bin/sh", "-c", "id -u; tr a-z A-Z < /etc/shells"]);
        let said = chroot.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), "0\n/BIN/SH\n", "{said:?}");
    });
    let printed = sandbox.holm(&["base", "inspect", "bb", "--json"]).ok().json();
    assert_eq!(printed["init"]["kind"], "busybox", "{printed}");
    // The same busybox gives the same image.
    sandbox.holm(&["base", "import", "again", "busybox"]).ok();
    let image =
        |name: &str| fs::read(sandbox.root().join("bases").join(name).join("image")).unwrap();
    assert!(image("bb") == image("again"), "two imports differ");
}

/// A Debian as mmdebstrap makes it, without what must not be in two guests.
fn debian(sandbox: &mut Sandbox) {
    let printed = sandbox.holm(&["base", "inspect", "debian13", "--json"]).ok().json();
    assert_eq!(printed["init"]["path"], "/sbin/init", "{printed}");
    assert!(printed["init"]["kind"].as_str().unwrap().starts_with("systemd 257"), "{printed}");
    assert!(printed["os"].as_str().unwrap().contains("13 (trixie)"), "{printed}");
    assert_eq!(printed["arch"], std::env::consts::ARCH, "{printed}");
    let ssh = view::with(sandbox.root(), "debian13", |tree| {
        assert_eq!(fs::read(tree.join("etc/machine-id")).unwrap(), b"");
        for gone in ["etc/hostname", "etc/resolv.conf", "var/lib/dbus/machine-id"] {
            assert!(fs::symlink_metadata(tree.join(gone)).is_err(), "{gone}");
        }
        for empty in ["dev", "proc", "run", "sys", "tmp"] {
            assert_eq!(fs::read_dir(tree.join(empty)).unwrap().count(), 0, "{empty}");
        }
        let mut program = Vec::new();
        File::open(tree.join("usr/bin/ping")).unwrap().read_to_end(&mut program).unwrap();
        assert!(program.starts_with(b"\x7fELF"));
        let ssh = fs::read_dir(tree.join("etc/ssh")).ok()?;
        Some(
            ssh.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>(),
        )
    });
    let Some(ssh) = ssh else { skip("this base has no ssh") };
    assert!(!ssh.iter().any(|name| name.starts_with("ssh_host_")), "{ssh:?}");
}
