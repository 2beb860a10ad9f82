//! Reading a directory of the host.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use composefs::generic_tree::LeafId;
use composefs::tree::{LeafContent, Stat};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

use super::Progress;
use crate::bodies::{Bodies, Store};
use crate::error::{Error, Result};
use crate::metadata::{open, read_xattrs, stat, to_stat};
use crate::objects::{Objects, copy_body};
use crate::tree::Tree;

/// Reads the directory `root`. Mountpoints in it, and the directories in `empty`, become empty
/// directories.
pub fn read(
    root: &Path,
    empty: &[&str],
    tree: &mut Tree,
    objects: &Objects,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = openat(CWD, root, flags, Mode::empty()).map_err(Error::io("open", root))?;
    let stat = stat(&fd, c"").map_err(Error::io("stat", root))?;
    let xattrs = read_xattrs(b".", format!("/proc/self/fd/{}/.", fd.as_raw_fd()))?;
    tree.directory(b"", to_stat(&stat, xattrs))?;
    let done = AtomicU64::new(0);
    let mut step = |path: &str| progress(done.load(Ordering::Relaxed), None, path);
    Bodies::store(tree, objects, &mut step, |bodies| {
        let mut scan = Scan { bodies, empty, links: HashMap::new(), done: &done };
        scan.directory(&fd.into(), &mut Vec::new(), stat.stx_mnt_id)
    })
}

/// A directory that is being read.
struct Scan<'a, 'b> {
    bodies: &'a mut Bodies<'b>,
    empty: &'a [&'a str],
    /// Files with several hard links, by device and inode.
    links: HashMap<(u32, u32, u64), LeafId>,
    /// The bytes of bodies that were read.
    done: &'b AtomicU64,
}

impl Scan<'_, '_> {
    fn directory(&mut self, fd: &File, path: &mut Vec<u8>, mount: u64) -> Result<()> {
        let mut names = Vec::new();
        let listing = Dir::read_from(fd).and_then(|dir| {
            for entry in dir {
                names.push(entry?.file_name().to_owned());
            }
            Ok(())
        });
        listing.map_err(Error::io("read", Path::new(OsStr::from_bytes(path))))?;
        // Sorted, so that equal directories give equal images and errors.
        names.sort();
        for name in names.iter().filter(|n| ![c".", c".."].contains(&n.as_c_str())) {
            let parent = path.len();
            if parent > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(name.to_bytes());
            self.entry(fd, name, path, mount)?;
            path.truncate(parent);
        }
        Ok(())
    }

    fn entry(&mut self, dir: &File, name: &CStr, path: &mut Vec<u8>, mount: u64) -> Result<()> {
        let shown = Path::new(OsStr::from_bytes(path));
        let found = match stat(dir, name) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(()), // removed since the directory was listed
            Err(e) => return Err(Error::io("stat", shown)(e)),
        };
        let kind = FileType::from_raw_mode(u32::from(found.stx_mode));
        let key = (found.stx_dev_major, found.stx_dev_minor, found.stx_ino);
        if kind != FileType::Directory
            && let Some(id) = self.links.get(&key)
        {
            return self.bodies.tree.link(path, *id);
        }
        let entry =
            [format!("/proc/self/fd/{}/", dir.as_raw_fd()).as_bytes(), name.to_bytes()].concat();
        let to_stat = |path: &[u8]| -> Result<Stat> {
            Ok(to_stat(&found, read_xattrs(path, OsStr::from_bytes(&entry))?))
        };
        let id = match kind {
            FileType::Directory => {
                self.bodies.tree.directory(path, to_stat(path)?)?;
                let left_out = self.empty.iter().any(|e| e.as_bytes() == path.as_slice());
                if left_out || found.stx_mnt_id != mount {
                    return Ok(());
                }
                let fd = open(dir, name, OFlags::DIRECTORY).map_err(Error::io("open", shown))?;
                return self.directory(&fd, path, mount);
            }
            FileType::RegularFile => {
                let file = open(dir, name, OFlags::NONBLOCK).map_err(Error::io("open", shown))?;
                let (done, shown) = (self.done, shown.to_owned());
                let store: Store<'_> = Box::new(move |objects, buffers| {
                    copy_body(&file, &shown, objects, buffers, &|bytes| {
                        done.fetch_add(bytes, Ordering::Relaxed);
                    })
                });
                self.bodies.file(path, to_stat(path)?, store)?
            }
            FileType::Symlink => {
                let target = readlinkat(dir, name, Vec::new()).map_err(Error::io("read", shown))?;
                let content = LeafContent::Symlink(OsStr::from_bytes(target.to_bytes()).into());
                self.bodies.tree.file(path, to_stat(path)?, content)?
            }
            FileType::Fifo => self.bodies.tree.file(path, to_stat(path)?, LeafContent::Fifo)?,
            // Useless without the process that made it, which makes a new one.
            FileType::Socket => return Ok(()),
            _ => return self.bodies.tree.leave_out(path),
        };
        if found.stx_nlink > 1 {
            self.links.insert(key, id);
        }
        Ok(())
    }
}
