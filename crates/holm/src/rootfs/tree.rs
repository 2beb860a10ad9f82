use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat2, statat};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, move_mount};

use super::{Error, Result};

/// The kind of mountpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// A directory.
    Directory,
    /// Anything else.
    File,
}

/// How often a path is tried that renames on the host interrupt.
const MOST_TRIES: usize = 1000;

/// How symbolic links in a path of the guest are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// They are followed, inside the guest's root: for binds, whose target the user has chosen.
    Follow,
    /// They are an error: the guest must not choose where its /proc goes.
    Refuse,
}

/// A guest's root while it is being assembled. Its content is the guest's, hence hostile: no path
/// is followed out of it, and none through a link where Holm's own mounts go.
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
    pub fn attach(&self, mount: &OwnedFd, path: &Path, point: Point, links: Links) -> Result<()> {
        let on = match self.open(path, links) {
            Err(Errno::NOENT) => {
                self.make(path, point)?;
                self.open(path, links)
            }
            other => other,
        };
        let on = on.map_err(|errno| in_the_way(path, errno))?;
        let is_directory = rustix::fs::fstat(&on)
            .map(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
            .map_err(|errno| in_the_way(path, errno))?;
        if is_directory != (point == Point::Directory) {
            let reason =
                if is_directory { "a directory is there" } else { "it is not a directory" };
            return Err(Error::Point { path: path.to_owned(), reason: reason.to_owned() });
        }
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(mount, "", &on, "", flags)
            .map_err(|errno| Error::io("mount on the guest's", path, errno))
    }

    /// Opens a path of the guest with `O_PATH`.
    pub fn open(&self, path: &Path, links: Links) -> rustix::io::Result<OwnedFd> {
        let mut resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        if links == Links::Refuse {
            resolve |= ResolveFlags::NO_SYMLINKS;
        }
        // A rename or mount anywhere on the host makes the kernel give up at a `..`, lest it leads
        // out (openat2(2)); guests may rename all the time.
        for _ in 0..MOST_TRIES {
            match openat2(&self.root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
            {
                Err(Errno::AGAIN) => {}
                opened => return opened,
            }
        }
        Err(Errno::AGAIN)
    }

    /// Opens a directory of the guest, made if it is missing; links on the way are followed inside
    /// it.
    pub fn directory(&self, path: &Path) -> Result<OwnedFd> {
        if matches!(self.open(path, Links::Follow), Err(Errno::NOENT)) {
            self.make(path, Point::Directory)?;
        }
        self.open(path, Links::Follow).map_err(|errno| in_the_way(path, errno))
    }

    /// Whether the guest has something at `path` that no link leads to.
    pub fn exists(&self, path: &Path) -> Result<bool> {
        match self.open(path, Links::Refuse) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => Ok(false),
            Err(errno) => Err(Error::io("look at the guest's", path, errno)),
        }
    }

    /// Makes a mountpoint and the directories above it.
    fn make(&self, path: &Path, point: Point) -> Result<()> {
        let names: Vec<&std::ffi::OsStr> = path
            .components()
            .filter_map(|part| if let Component::Normal(name) = part { Some(name) } else { None })
            .collect();
        let mut parent = PathBuf::from("/");
        for (index, name) in names.iter().enumerate() {
            let directory =
                self.open(&parent, Links::Follow).map_err(|errno| in_the_way(&parent, errno))?;
            let last = index + 1 == names.len();
            let made = match statat(&directory, *name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) if last && point == Point::File => {
                    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                    rustix::fs::openat(&directory, *name, flags, Mode::from_raw_mode(0o644))
                        .map(drop)
                }
                Err(Errno::NOENT) => mkdirat(&directory, *name, Mode::from_raw_mode(0o755)),
                looked => looked.map(drop),
            };
            made.map_err(|errno| Error::io("make the guest's", path, errno))?;
            parent.push(name);
        }
        Ok(())
    }
}

fn in_the_way(path: &Path, errno: Errno) -> Error {
    let reason = match errno {
        Errno::LOOP => "it is a symbolic link".to_owned(),
        Errno::NOTDIR => "a part of it is not a directory".to_owned(),
        Errno::NOMEM | Errno::MFILE | Errno::NFILE | Errno::IO => {
            return Error::io("look at the guest's", path, errno);
        }
        other => other.to_string(),
    };
    Error::Point { path: path.to_owned(), reason }
}
