use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use holm_sys::mount;
use rustix::fs::{CWD, FileType, Mode, mkdir, mknodat, unlink};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MoveMountFlags, move_mount};

use super::fsmount::set_flags;
use super::table::ROOT_FLAGS;
use super::{Error, Filesystem, LoopDevice, Result, clone_tree, mount_image, mount_tmpfs};

/// The upper directory of a private layer: what the guest has changed.
pub const UPPER: &str = "upper";
/// The directory that is the root of a guest without an overlay.
pub const PLAIN: &str = "root";
/// The work directory next to it, for overlayfs alone.
pub const WORK: &str = "work";

/// Files beside them in a disk image, for their inodes: see [`mount_overlay_of_image`].
const SPARES: [&str; 3] = ["spare-1", "spare-2", "spare-3"];

/// What a guest's root is made of.
#[derive(Debug, Clone, Copy)]
pub struct Layers<'a> {
    /// The base's metadata image (EROFS in the composefs layout).
    pub image: &'a Path,
    /// A detached copy of its mount that all guests of the base share, if there is one.
    pub shared: Option<BorrowedFd<'a>>,
    /// The guest's own metadata image, if it was unified, and the base's below it.
    pub unified: Option<&'a Path>,
    /// The directory of objects: the overlay's data-only lower layer.
    pub objects: &'a Path,
    /// The guest's own changes.
    pub upper: Upper<'a>,
    /// All files have the device number of the root, and inode numbers that differ by layer, of 64
    /// bits. Programs of 32 bits without large-file support cannot stat such files (EOVERFLOW).
    pub xino: bool,
}

/// Where a guest's private layer is.
#[derive(Debug, Clone, Copy)]
pub enum Upper<'a> {
    /// In [`UPPER`] and [`WORK`] of this directory.
    Disk(&'a Path),
    /// In [`UPPER`] and [`WORK`] of the ext4 in this file.
    Image(&'a Path),
    /// In [`PLAIN`] of this directory, which has the base's files too: there is no overlay.
    Plain(&'a Path),
    /// On a tmpfs, charged to the guest and gone with it. Making an overlay on tmpfs takes a
    /// quarter of the time on ext4, and nothing has to be written back.
    Memory {
        /// Bytes that it may take; `None` for half of the host's memory.
        size: Option<u64>,
        /// Files that it may have.
        inodes: Option<u64>,
    },
}

/// The directory of a guest's own image that is the layer: what is beside it would hide the base.
pub const TREE: &str = "tree";

/// Mounts the layers at `stage/{image,objects,unified,disk}` and an overlay of them at
/// `stage/root`; returns the overlay.
///
/// The layers are idmapped, not the overlay: overlayfs does not support idmapped mounts of itself.
/// Without a user namespace owners are as on the disk.
/// Before Linux 6.15 it takes no detached mount as a layer, so they are attached and named by path.
pub fn mount_root(
    stage: &Path,
    layers: Layers<'_>,
    user_namespace: Option<BorrowedFd<'_>>,
) -> Result<OwnedFd> {
    if let Upper::Plain(disk) = layers.upper {
        return mount_plain(stage, &disk.join(PLAIN), user_namespace);
    }
    match layers.shared {
        Some(copy) => attach(idmapped(copy, layers.image, user_namespace)?, &stage.join("image"))?,
        None => attach_image(layers.image, &stage.join("image"), user_namespace)?,
    }
    if let Some(image) = layers.unified {
        attach_image(image, &stage.join("unified"), user_namespace)?;
    }
    attach(clone_tree(layers.objects, user_namespace)?, &stage.join("objects"))?;
    let disk = stage.join("disk");
    attach(mount_upper(layers.upper, user_namespace)?, &disk)?;
    if !matches!(layers.upper, Upper::Disk(_)) {
        for directory in [UPPER, WORK] {
            let path = disk.join(directory);
            match mkdir(&path, Mode::from_raw_mode(0o755)) {
                // An image has them from its first start on.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(Error::io("make the directory", path, errno)),
            }
        }
    }
    let root = match layers.upper {
        Upper::Image(image) => mount_overlay_of_image(stage, layers, image)?,
        _ => mount_overlay(stage, layers).map_err(|error| match layers.upper {
            Upper::Disk(disk) if is_full(&error) => Error::DiskFull { disk: disk.to_owned() },
            _ => error,
        })?,
    };
    refuse_read_only(&root, layers.upper)?;
    let here = root.try_clone().map_err(|error| Error::io("keep", stage.join("root"), error))?;
    attach(root, &stage.join("root"))?;
    Ok(here)
}

/// The guest must start even if its disk is full, or nobody could remove its files. overlayfs makes
/// its work directory anew, and then tries out in it what takes inodes.
fn mount_overlay_of_image(stage: &Path, layers: Layers<'_>, image: &Path) -> Result<OwnedFd> {
    let spares = SPARES.map(|name| stage.join("disk").join(name));
    let keep = || {
        for spare in &spares {
            // There is one, or no inode for it.
            let _ = mknodat(CWD, spare, FileType::RegularFile, Mode::empty(), 0);
        }
    };
    keep();
    match mount_overlay(stage, layers) {
        Ok(root) if !is_read_only(&root)? => return Ok(root),
        Err(error) if !is_full(&error) => return Err(error),
        Ok(_) | Err(_) => {}
    }
    LoopDevice::of(image)?.without_reserve(|| {
        for spare in &spares {
            // One that stays is an inode less.
            let _ = unlink(spare);
        }
        let root = mount_overlay(stage, layers);
        keep();
        root
    })?
}

fn mount_overlay(stage: &Path, layers: Layers<'_>) -> Result<OwnedFd> {
    let mut root = Filesystem::open("overlay")?.set("source", "holm")?;
    if layers.unified.is_some() {
        root = root.set("lowerdir+", stage.join("unified").join(TREE))?;
    }
    let disk = stage.join("disk");
    root.set("lowerdir+", stage.join("image"))?
        .set("datadir+", stage.join("objects"))?
        .set("upperdir", disk.join(UPPER))?
        .set("workdir", disk.join(WORK))?
        .set("metacopy", "on")?
        .set("redirect_dir", "on")?
        .set("index", "off")?
        .set("xino", if layers.xino { "on" } else { "off" })?
        .mount(ROOT_FLAGS)
}

fn mount_plain(
    stage: &Path,
    root: &Path,
    user_namespace: Option<BorrowedFd<'_>>,
) -> Result<OwnedFd> {
    let mounted = clone_tree(root, user_namespace)?;
    set_flags(&mounted, ROOT_FLAGS).map_err(|error| Error::io("set the flags of", root, error))?;
    let here = mounted.try_clone().map_err(|error| Error::io("keep", root, error))?;
    attach(mounted, &stage.join("root"))?;
    Ok(here)
}

/// Mounts the ext4 in `image` on a directory, with the owners that it has on the disk.
pub fn mount_disk_image(image: &Path, on: &Path) -> Result<()> {
    attach(LoopDevice::of(image)?.mount()?, on)
}

fn attach_image(image: &Path, on: &Path, user_namespace: Option<BorrowedFd<'_>>) -> Result<()> {
    attach(idmapped(mount_image(image, MountAttrFlags::empty())?, image, user_namespace)?, on)
}

fn idmapped<M: AsFd>(
    mounted: M,
    image: &Path,
    user_namespace: Option<BorrowedFd<'_>>,
) -> Result<M> {
    if let Some(user_namespace) = user_namespace {
        mount::make_idmapped(mounted.as_fd(), user_namespace)
            .map_err(|error| Error::io("make an idmapped mount of", image, error))?;
    }
    Ok(mounted)
}

fn mount_upper(upper: Upper<'_>, user_namespace: Option<BorrowedFd<'_>>) -> Result<OwnedFd> {
    match upper {
        Upper::Disk(directory) | Upper::Plain(directory) => clone_tree(directory, user_namespace),
        Upper::Image(image) => idmapped(LoopDevice::of(image)?.mount()?, image, user_namespace),
        Upper::Memory { size, inodes } => {
            let limits = [("size", size), ("nr_inodes", inodes)];
            let texts = limits.map(|(key, limit)| (key, limit.map(|limit| limit.to_string())));
            let options: Vec<(&str, &str)> =
                texts.iter().filter_map(|(key, text)| Some((*key, text.as_deref()?))).collect();
            mount_tmpfs("0755", &options, MountAttrFlags::empty(), user_namespace)
        }
    }
}

/// The kernel mounts an overlay read-only if it cannot create its work directory, and reports that
/// by the flags alone.
fn is_read_only(root: &OwnedFd) -> Result<bool> {
    let found = rustix::fs::fstatvfs(root)
        .map_err(|errno| Error::io("look at", "the guest's root", errno))?;
    Ok(found.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

fn refuse_read_only(root: &OwnedFd, upper: Upper<'_>) -> Result<()> {
    if !is_read_only(root)? {
        return Ok(());
    }
    let disk = match upper {
        Upper::Disk(path) | Upper::Plain(path) | Upper::Image(path) => path,
        Upper::Memory { .. } => Path::new("tmpfs"),
    };
    Err(Error::ReadOnly { disk: disk.to_owned() })
}

fn is_full(error: &Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error, Error::Mount { source, .. }
        if matches!(source.kind(), StorageFull | QuotaExceeded))
}

fn attach(mount: impl AsFd, on: &Path) -> Result<()> {
    move_mount(mount, "", CWD, on, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .map_err(|errno| Error::io("mount on", on, errno))
}
