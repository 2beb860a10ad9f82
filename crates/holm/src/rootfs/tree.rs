use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat2, statat};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, move_mount};

use super::{Error, Result};

/// What a mount goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// A folder.
    Folder,
    /// Anything else.
    File,
}

/// A guest's root while it is being assembled. Its content is the guest's, hence hostile: no path is
/// followed out of it, and none through a link where Holm's own mounts go.
#[derive(Debug)]
pub struct Tree {
    root: OwnedFd,
}

impl Tree {
    /// The tree below `root`.
    pub fn new(root: OwnedFd) -> Self {
        Self { root }
    }

    /// The root's descriptor.
    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Attaches `mount` at `path`, an absolute path in the guest, which is made if it is missing.
    ///
    /// With `links` symbolic links on the way are followed, inside the guest: for binds, whose place
    /// the user chose. Without, a link is an error: the guest must not choose where its /proc goes.
    pub fn attach(&self, mount: &OwnedFd, path: &Path, point: Point, links: bool) -> Result<()> {
        let on = match self.open(path, links) {
            Err(Errno::NOENT) => {
                self.make(path, point)?;
                self.open(path, links)
            }
            other => other,
        };
        let on = on.map_err(|errno| in_the_way(path, errno))?;
        let is_folder = rustix::fs::fstat(&on)
            .map(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
            .map_err(|errno| in_the_way(path, errno))?;
        if is_folder != (point == Point::Folder) {
            let reason = if is_folder { "a folder is there" } else { "it is not a folder" };
            return Err(Error::Point { path: path.to_owned(), reason: reason.to_owned() });
        }
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(mount, "", &on, "", flags)
            .map_err(|errno| Error::io("mount on the guest's", path, errno))
    }

    /// Opens a path of the guest as a place, without access to what it holds.
    pub fn open(&self, path: &Path, links: bool) -> rustix::io::Result<OwnedFd> {
        let mut resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        if !links {
            resolve |= ResolveFlags::NO_SYMLINKS;
        }
        openat2(&self.root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
    }

    /// Opens a folder of the guest, made if it is missing; links on the way are followed inside it.
    pub fn folder(&self, path: &Path) -> Result<OwnedFd> {
        if matches!(self.open(path, true), Err(Errno::NOENT)) {
            self.make(path, Point::Folder)?;
        }
        self.open(path, true).map_err(|errno| in_the_way(path, errno))
    }

    /// Whether the guest has something at `path`.
    pub fn exists(&self, path: &Path) -> bool {
        self.open(path, false).is_ok()
    }

    /// Makes a mountpoint and the folders above it.
    fn make(&self, path: &Path, point: Point) -> Result<()> {
        let names: Vec<&std::ffi::OsStr> = path
            .components()
            .filter_map(|part| if let Component::Normal(name) = part { Some(name) } else { None })
            .collect();
        let mut parent = PathBuf::from("/");
        for (index, name) in names.iter().enumerate() {
            let folder = self.open(&parent, true).map_err(|errno| in_the_way(&parent, errno))?;
            let last = index + 1 == names.len();
            if statat(&folder, *name, AtFlags::SYMLINK_NOFOLLOW).is_err() {
                let made = if last && point == Point::File {
                    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                    rustix::fs::openat(&folder, *name, flags, Mode::from_raw_mode(0o644)).map(drop)
                } else {
                    mkdirat(&folder, *name, Mode::from_raw_mode(0o755))
                };
                made.map_err(|errno| Error::io("make the guest's", path, errno))?;
            }
            parent.push(name);
        }
        Ok(())
    }
}

fn in_the_way(path: &Path, errno: Errno) -> Error {
    let reason = match errno {
        Errno::LOOP => "it is a symbolic link".to_owned(),
        Errno::NOTDIR => "a part of it is not a folder".to_owned(),
        other => other.to_string(),
    };
    Error::Point { path: path.to_owned(), reason }
}
