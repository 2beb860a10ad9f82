//! A base as a guest sees it: its image and the objects below an overlay.

use std::path::{Path, PathBuf};

use holm_sys::mount::make_all_private;
use holm_sys::process::{flags, unshare};
use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount,
};

/// Runs `look` with the base `name` of the Holm root `root` mounted, on a thread with a mount
/// namespace of its own: nothing is ever mounted on the host. Programs it starts see the same.
pub fn with<T: Send>(root: &Path, name: &str, look: impl FnOnce(&Path) -> T + Send) -> T {
    let in_private = || {
        let image = root.join("stage/image");
        let top = root.join("stage/root");
        let source = [("source", root.join("bases").join(name).join("image"))];
        mount("erofs", &source, &image);
        let layers = [
            ("lowerdir+", image),
            ("datadir+", root.join("objects")),
            ("metacopy", "on".into()),
            ("redirect_dir", "on".into()),
        ];
        mount("overlay", &layers, &top);
        look(&top)
    };
    private(in_private)
}

/// Runs `work` on a thread with a mount namespace of its own.
pub fn private<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let inside = || {
        unshare(flags::NEWNS).expect("a mount namespace");
        make_all_private().expect("a private mount namespace");
        work()
    };
    std::thread::scope(|scope| match scope.spawn(inside).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Mounts a filesystem, read-only if it is an image.
pub fn mount(kind: &str, options: &[(&str, PathBuf)], to: &Path) {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).expect(kind);
    for (key, value) in options {
        fsconfig_set_string(&context, *key, value).unwrap_or_else(|e| panic!("{kind} {key}: {e}"));
    }
    if kind == "erofs" {
        fsconfig_set_flag(&context, "ro").expect("ro");
    }
    fsconfig_create(&context).unwrap_or_else(|e| panic!("{kind}: {e}"));
    let mount =
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty()).expect(kind);
    move_mount(&mount, "", CWD, to, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .unwrap_or_else(|e| panic!("{}: {e}", to.display()));
}
