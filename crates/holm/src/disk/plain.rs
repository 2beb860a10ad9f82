//! A root without an overlay: a copy of the base in a plain directory.
//!
//! Where the filesystem can, the bodies are clones of the objects (`FICLONE`, `ioctl_ficlone(2)`):
//! they take no room on the disk until they are written to. In memory the guest has pages of its
//! own.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags, ioctl_ficlone, lgetxattr,
    llistxattr, lsetxattr, mknodat, syncfs, utimensat,
};
use rustix::io::Errno;

use super::Error;
use crate::Failed;
use crate::failed::is_there;
use crate::pool::{Name, Pool, remove_tree};
use crate::process::{HostNamespaces, unshare_mounts};
use crate::rootfs::{Layers, PLAIN, Upper, mount_root};
use crate::step;

/// Where an image in the composefs layout says in which object a file's body is.
const REDIRECT: &str = "trusted.overlay.redirect";

type Result<T> = std::result::Result<T, Error>;

/// Makes the root of a guest, which is locked, in its layer `disk`, from what `layers` has below
/// the guest's own, unless it is there. It appears complete or not at all.
pub fn make_missing(pool: &Pool, guest: &Name, layers: Layers<'_>, disk: &Path) -> Result<()> {
    let root = disk.join(PLAIN);
    if is_there(&root)? {
        return Ok(());
    }
    let new = disk.join("root.new");
    if is_there(&new)? {
        remove_tree(&new).map_err(Error::Pool)?;
    }
    // It may take a while where the filesystem cannot clone.
    pool.report_repair(&format!("copying the base for the root of guest {guest}, once"));
    let host = HostNamespaces::save()?;
    unshare_mounts()?;
    let copied = copy(pool, layers, &new);
    host.restore()?;
    if let Err(error) = copied {
        // If this fails, the next start does it.
        let _ = remove_tree(&new);
        return Err(error);
    }
    step::done("plain-copied");
    fs::rename(&new, &root).map_err(|error| Failed::new("move to", &root, error))?;
    Ok(crate::pool::sync(disk)?)
}

/// Without id maps: owners on the disk are those in the guest.
fn copy(pool: &Pool, layers: Layers<'_>, new: &Path) -> Result<()> {
    let stage = pool.stage_dir();
    let memory = Upper::Memory { size: None, inodes: None };
    mount_root(&stage, Layers { upper: memory, unified: None, ..layers }, None)?;
    let mut copy = Copy {
        root: stage.join("root"),
        image: stage.join("image"),
        objects: layers.objects.to_owned(),
        new: new.to_owned(),
        names: HashMap::new(),
        clones: true,
    };
    copy.all()?;
    let fail = |error: io::Error| Failed::new("sync", new, error);
    let whole = File::open(new).map_err(fail)?;
    Ok(syncfs(&whole).map_err(|errno| fail(errno.into()))?)
}

/// Copying a root. All paths are walked from the top, through directories that nobody else writes
/// to.
struct Copy {
    /// The overlay, which shows what a guest would see.
    root: PathBuf,
    /// The base's image alone, which says where bodies are.
    image: PathBuf,
    objects: PathBuf,
    new: PathBuf,
    /// The first name of each file that has several, by its inode number.
    names: HashMap<u64, PathBuf>,
    /// Whether the filesystem can clone, as far as is known.
    clones: bool,
}

impl Copy {
    fn all(&mut self) -> Result<()> {
        let mut directories = vec![PathBuf::new()];
        let mut next = 0;
        while let Some(directory) = directories.get(next).cloned() {
            let fail =
                |error| Failed::new("read the base's", Path::new("/").join(&directory), error);
            let path = self.new.join(&directory);
            DirBuilder::new()
                .mode(0o700)
                .create(&path)
                .map_err(|e| Failed::new("make", &path, e))?;
            for entry in fs::read_dir(self.root.join(&directory)).map_err(fail)? {
                let path = directory.join(entry.map_err(fail)?.file_name());
                let found = fs::symlink_metadata(self.root.join(&path)).map_err(fail)?;
                if found.is_dir() {
                    directories.push(path);
                    continue;
                }
                self.file(&path, &found).map_err(|error| {
                    Failed::new("copy the base's", Path::new("/").join(&path), error)
                })?;
            }
            next += 1;
        }
        // Their times last, when nothing is made in them any more.
        for directory in directories.iter().rev() {
            let path = Path::new("/").join(directory);
            let found = fs::symlink_metadata(self.root.join(directory));
            found
                .and_then(|found| self.attributes(directory, &found))
                .map_err(|error| Failed::new("copy the base's", path, error))?;
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, found: &Metadata) -> io::Result<()> {
        let new = self.new.join(path);
        if found.nlink() > 1 {
            if let Some(first) = self.names.get(&found.ino()) {
                return fs::hard_link(self.new.join(first), &new);
            }
            self.names.insert(found.ino(), path.to_owned());
        }
        let kind = found.file_type();
        if kind.is_file() {
            self.body(path, &File::create_new(&new)?)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(self.root.join(path))?, &new)?;
        } else {
            let kind = match () {
                () if kind.is_char_device() => FileType::CharacterDevice,
                () if kind.is_block_device() => FileType::BlockDevice,
                () if kind.is_socket() => FileType::Socket,
                () => FileType::Fifo,
            };
            mknodat(CWD, &new, kind, Mode::from_raw_mode(0o600), found.rdev())?;
        }
        self.attributes(path, found)
    }

    fn body(&mut self, path: &Path, new: &File) -> io::Result<()> {
        if self.clones
            && let Some(object) = self.object(path)?
        {
            match ioctl_ficlone(new, &File::open(object)?) {
                Ok(()) => return Ok(()),
                Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL | Errno::XDEV) => {
                    self.clones = false;
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        io::copy(&mut File::open(self.root.join(path))?, &mut { new }).map(drop)
    }

    /// The object with a file's body; small ones are in the image.
    fn object(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        let mut text = [0; 256];
        match lgetxattr(self.image.join(path), REDIRECT, &mut text) {
            Ok(length) => {
                let relative = std::str::from_utf8(&text[..length]).map_err(io::Error::other)?;
                Ok(Some(self.objects.join(relative.trim_start_matches('/'))))
            }
            Err(Errno::NODATA) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// In this order: a new owner takes set-user-id bits and capabilities away.
    fn attributes(&self, path: &Path, found: &Metadata) -> io::Result<()> {
        let (from, to) = (self.root.join(path), self.new.join(path));
        std::os::unix::fs::lchown(&to, Some(found.uid()), Some(found.gid()))?;
        if !found.is_symlink() {
            fs::set_permissions(&to, fs::Permissions::from_mode(found.mode() & 0o7777))?;
        }
        copy_xattrs(&from, &to)?;
        let time = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
        let times = Timestamps {
            last_access: time(found.atime(), found.atime_nsec()),
            last_modification: time(found.mtime(), found.mtime_nsec()),
        };
        Ok(utimensat(CWD, &to, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

/// xattr(7): both limits are the kernel's.
fn copy_xattrs(from: &Path, to: &Path) -> io::Result<()> {
    const LONGEST: usize = 1 << 16;
    let mut names = Vec::with_capacity(LONGEST);
    match llistxattr(from, rustix::buffer::spare_capacity(&mut names)) {
        Err(Errno::OPNOTSUPP) => return Ok(()),
        other => other?,
    };
    let mut value = Vec::with_capacity(LONGEST);
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        value.clear();
        let name = std::ffi::OsStr::from_bytes(name);
        lgetxattr(from, name, rustix::buffer::spare_capacity(&mut value))?;
        lsetxattr(to, name, &value, XattrFlags::empty())?;
    }
    Ok(())
}
