//! Objects on filesystems that can do more than ext4 without options: clones and fs-verity.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use rustix::io::Errno;

use super::filesystem::{Kind, launch, on};
use crate::guest::exec;
use crate::sandbox::{Sandbox, skip};
use crate::test::{Test, test};
use crate::topics::bases::objects;

pub const TESTS: &[Test] = &[
    test!(an_import_clones_on_xfs),
    test!(an_import_clones_on_btrfs),
    test!(they_are_protected_on_ext4),
    test!(they_are_protected_on_btrfs),
];

fn an_import_clones_on_xfs(sandbox: &mut Sandbox) {
    on(Kind::Xfs, sandbox, an_import_clones);
}

fn an_import_clones_on_btrfs(sandbox: &mut Sandbox) {
    on(Kind::Btrfs, sandbox, an_import_clones);
}

/// The source of the base lies on the same filesystem. It has one body that is long enough.
fn an_import_clones(sandbox: &Sandbox) {
    let all = objects(sandbox.root());
    let [object] = all.as_slice() else { panic!("{all:?}") };
    let shown = sandbox.run(Command::new("filefrag").args(["-v", object])).ok();
    assert!(shown.stdout.contains("shared"), "{shown}");
    // The source is nobody's object.
    let busybox = sandbox.root().join("source/bin/busybox");
    let source = OpenOptions::new().write(true).open(&busybox);
    source.and_then(|file| file.write_all_at(b"changed", 0)).expect("it may be written");
    assert_eq!(sandbox.holm(&["fsck"]).code(), 0, "the object is as it was");
    // A body that the store has is not stored again, nor one that another file has.
    fs::copy("/bin/busybox", &busybox).expect("busybox");
    fs::copy("/bin/busybox", busybox.with_extension("again")).expect("a file");
    let source = sandbox.root().join("source").to_string_lossy().into_owned();
    let said = sandbox.holm(&["base", "import", "again", &source, "--json"]).ok();
    assert_eq!(objects(sandbox.root()), all, "{said}");
    let list = sandbox.holm(&["base", "ls", "--json"]).ok().json();
    let again = list.as_array().and_then(|bases| bases.iter().find(|b| b["name"] == "again"));
    assert_eq!(again.map(|base| &base["own_bytes"]), Some(&0.into()), "{list}");
}

fn they_are_protected_on_ext4(sandbox: &mut Sandbox) {
    on(Kind::Ext4, sandbox, they_are_protected);
}

fn they_are_protected_on_btrfs(sandbox: &mut Sandbox) {
    on(Kind::Btrfs, sandbox, they_are_protected);
}

fn they_are_protected(sandbox: &Sandbox) {
    if !Path::new("/proc/sys/fs/verity").exists() && !has_verity() {
        skip("this kernel has no fs-verity");
    }
    let protected = |path: &str| {
        let found = statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS).expect(path);
        found.stx_attributes.contains(StatxAttributes::VERITY)
    };
    let all = objects(sandbox.root());
    assert!(!all.is_empty() && all.iter().all(|object| protected(object)), "{all:?}");
    let refused = OpenOptions::new().write(true).open(&all[0]).map(drop);
    let refused = refused.as_ref().map_err(io::Error::raw_os_error);
    assert_eq!(refused, Err(Some(Errno::PERM.raw_os_error())), "not by root either");
    // What unify stores is protected too, and guests read it.
    for name in ["a", "b"] {
        launch(sandbox, name, &[]);
        exec(sandbox, name, "cat /bin/sleep /bin/sleep > /twice").ok();
    }
    sandbox.holm(&["stop", "a", "b"]).ok();
    sandbox.holm(&["unify", "--all", "--min-age", "0"]).ok();
    let more = objects(sandbox.root());
    assert!(more.len() > all.len() && more.iter().all(|object| protected(object)), "{more:?}");
    sandbox.holm(&["start", "a"]).ok();
    exec(sandbox, "a", "cat /bin/sleep /bin/sleep | cmp - /twice && echo >> /twice").ok();
    assert_eq!(sandbox.holm(&["fsck"]).code(), 0);
    sandbox.holm(&["rm", "--force", "a", "b"]).ok();
}

/// Whether the kernel was built with it.
fn has_verity() -> bool {
    fs::read_to_string("/proc/kallsyms").is_ok_and(|all| all.contains(" fsverity_ioctl_enable"))
}
