//! The mounts of a guest's root: a metadata image, idmapped layers, and an overlay of them.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use holm_sys::mount::{make_all_private, map_ids};
use holm_sys::process::flags;
use rustix::fs::{CWD, Mode, OFlags, StatVfsMountFlags, fstatvfs, openat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_fd, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use super::scratch::Scratch;
use super::{Answer, Machine, child};

/// Any range that is no person's: the probe's files live for a moment.
const PROBE_IDS: u32 = 1 << 26;

pub(super) fn image(machine: &Machine) -> Answer {
    Answer::from(
        machine
            .scratch()
            .and_then(|scratch| mount_image(scratch).map(|_| "mounted from a file".to_owned())),
    )
}

pub(super) fn id_maps(machine: &Machine) -> Answer {
    Answer::from(machine.scratch().and_then(|scratch| {
        let namespace = child::user_namespace(PROBE_IDS)?;
        map_folder(&scratch.folder("mapped")?, &namespace)?;
        Ok(format!("on {}", machine.root.display()))
    }))
}

pub(super) fn overlay(machine: &Machine) -> Answer {
    Answer::from(machine.scratch().and_then(|scratch| {
        let namespace = child::user_namespace(PROBE_IDS)?;
        child::run(flags::NEWNS, None, || {
            mount_overlay(scratch, "attached", &namespace, attached)
        })?;
        Ok("metacopy, data-only and idmapped layers, writable".to_owned())
    }))
}

/// Since 6.15 an overlay takes layers by descriptor that are mounted nowhere.
pub(super) fn detached(machine: &Machine) -> Answer {
    Answer::from(machine.scratch().and_then(|scratch| {
        let namespace = child::user_namespace(PROBE_IDS)?;
        child::run(flags::NEWNS, None, || {
            mount_overlay(scratch, "detached", &namespace, |_, mount| Ok(Layer::Detached(mount)))
        })
        .map_err(|error| format!("{error} (comes with Linux 6.15)"))?;
        Ok("layers are given by descriptor".to_owned())
    }))
}

/// A layer of an overlay.
enum Layer {
    Detached(OwnedFd),
    Attached(PathBuf),
}

impl Layer {
    fn give(&self, overlay: &OwnedFd, key: &str) -> Result<(), String> {
        match self {
            Self::Detached(mount) => fsconfig_set_fd(overlay, key, mount),
            Self::Attached(place) => fsconfig_set_string(overlay, key, place),
        }
        .map_err(words(key))
    }

    /// The folder `name` in it.
    fn part(&self, name: &str) -> Result<Self, String> {
        match self {
            Self::Attached(place) => Ok(Self::Attached(place.join(name))),
            Self::Detached(mount) => {
                openat(mount, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
                    .map(Self::Detached)
                    .map_err(words("open the upper layer"))
            }
        }
    }
}

/// Attaches a layer to the folder `place`, as kernels before 6.15 need it: they take paths only.
fn attached(place: &Path, mount: OwnedFd) -> Result<Layer, String> {
    move_mount(&mount, c"", CWD, place, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .map_err(words("attach a layer"))?;
    drop(mount); // the folder holds it now
    Ok(Layer::Attached(place.to_owned()))
}

/// Mounts what a guest's root is made of, and writes a file there as the guest's root would.
fn mount_overlay(
    scratch: &Scratch,
    disk: &str,
    namespace: &OwnedFd,
    place: impl Fn(&Path, OwnedFd) -> Result<Layer, String>,
) -> Result<String, String> {
    make_all_private().map_err(|error| format!("cannot make mounts private: {error}"))?;
    let image = mount_image(scratch)?;
    map_ids(image.as_fd(), namespace.as_fd())
        .map_err(|error| format!("cannot map ids of an EROFS mount: {error}"))?;
    let image = place(&scratch.folder("on-image")?, image)?;
    let objects =
        place(&scratch.folder("on-objects")?, map_folder(&scratch.folder("objects")?, namespace)?)?;
    for part in ["upper", "work"] {
        let path = scratch.folder(&format!("{disk}/{part}"))?;
        std::os::unix::fs::chown(&path, Some(0), Some(0))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let disk = place(&scratch.folder("on-disk")?, map_folder(&scratch.folder(disk)?, namespace)?)?;

    // The overlay makes folders in `work` as whoever mounts it, so that must be an id that the map knows.
    holm_sys::process::set_fs_ids(PROBE_IDS, PROBE_IDS);
    let all = rustix::thread::capabilities(None).map_err(words("read capabilities"))?;
    let raised = rustix::thread::CapabilitySets { effective: all.permitted, ..all };
    rustix::thread::set_capabilities(None, raised).map_err(words("keep capabilities"))?;

    let context = fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC).map_err(words("open overlay"))?;
    let set =
        |key: &str, value: &str| fsconfig_set_string(&context, key, value).map_err(words(key));
    image.give(&context, "lowerdir+")?;
    objects.give(&context, "datadir+")?;
    disk.part("upper")?.give(&context, "upperdir")?;
    disk.part("work")?.give(&context, "workdir")?;
    set("metacopy", "on")?;
    set("redirect_dir", "on")?;
    fsconfig_create(&context).map_err(|error| log_or(&context, "mount overlay", error))?;
    let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
        .map_err(words("fsmount"))?;
    let stat = fstatvfs(&root).map_err(words("look at the overlay"))?;
    if stat.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(
            "the overlay came out read-only: this filesystem cannot hold an upper layer".to_owned()
        );
    }
    Ok(String::new())
}

/// An EROFS image with an empty root folder, mounted from a file without a loop device.
fn mount_image(scratch: &Scratch) -> Result<OwnedFd, String> {
    let file = scratch.path().join("image");
    fs::write(&file, empty_image()).map_err(|error| format!("{}: {error}", file.display()))?;
    let context = fsopen(c"erofs", FsOpenFlags::FSOPEN_CLOEXEC).map_err(words("open erofs"))?;
    fsconfig_set_string(&context, c"source", &file).map_err(words("erofs source="))?;
    fsconfig_create(&context).map_err(|error| log_or(&context, "mount an EROFS file", error))?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY)
        .map_err(words("fsmount"))
}

/// A detached mount of the folder, with ids mapped as the user namespace says.
fn map_folder(folder: &Path, namespace: &OwnedFd) -> Result<OwnedFd, String> {
    let mount =
        open_tree(CWD, folder, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC)
            .map_err(words("clone a mount"))?;
    map_ids(mount.as_fd(), namespace.as_fd())
        .map_err(|error| format!("cannot map ids of a mount: {error}"))?;
    Ok(mount)
}

fn words(tried: &str) -> impl Fn(Errno) -> String {
    move |error| format!("{tried}: {error}")
}

/// What the kernel wrote into the mount's message log, or the error's own words.
fn log_or(context: &OwnedFd, tried: &str, error: Errno) -> String {
    let mut text = vec![0; 1024];
    let length = rustix::io::read(context, &mut text).unwrap_or(0);
    text.truncate(length);
    let log = String::from_utf8_lossy(&text);
    let log = log.trim();
    if log.is_empty() { format!("{tried}: {error}") } else { format!("{tried}: {error} ({log})") }
}

/// The smallest EROFS: a superblock and one empty root folder (Documentation/filesystems/erofs.rst).
pub(super) fn empty_image() -> Vec<u8> {
    const ROOT: u8 = 36; // its number counts slots of 32 bytes
    let mut image = vec![0; 4096];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    put(1024, &0xe0f5_e1e2_u32.to_le_bytes()); // magic
    put(1024 + 12, &[12]); // blocks of 2^12 bytes
    put(1024 + 14, &[ROOT, 0]); // root inode
    put(1024 + 16, &1u64.to_le_bytes()); // inodes
    put(1024 + 36, &1u32.to_le_bytes()); // blocks
    let inode = usize::from(ROOT) * 32;
    put(inode, &4u16.to_le_bytes()); // compact inode, contents behind it
    put(inode + 4, &0o40755u16.to_le_bytes());
    put(inode + 6, &2u16.to_le_bytes()); // links
    put(inode + 8, &27u32.to_le_bytes()); // length of the folder
    for (slot, (name_at, kind)) in [(24u16, 2u8), (25, 2)].into_iter().enumerate() {
        let entry = inode + 32 + slot * 12;
        put(entry, &u64::from(ROOT).to_le_bytes());
        put(entry + 8, &name_at.to_le_bytes());
        put(entry + 10, &[kind]);
    }
    put(inode + 32 + 24, b"...");
    image
}
