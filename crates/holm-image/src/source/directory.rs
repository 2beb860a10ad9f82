//! Reading a directory of the host.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use composefs::generic_tree::LeafId;
use composefs::tree::{LeafContent, Stat};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

use super::Progress;
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
    objects: &mut Objects,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = openat(CWD, root, flags, Mode::empty()).map_err(Error::io("open", root))?;
    let stat = stat(&fd, c"").map_err(Error::io("stat", root))?;
    let xattrs = read_xattrs(b".", format!("/proc/self/fd/{}/.", fd.as_raw_fd()))?;
    tree.directory(b"", to_stat(&stat, xattrs))?;
    let mut scan = Scan { tree, objects, progress, empty, links: HashMap::new(), done: 0 };
    scan.directory(&fd.into(), &mut Vec::new(), stat.stx_mnt_id)
}

/// A directory that is being read.
struct Scan<'a, 'p> {
    tree: &'a mut Tree,
    objects: &'a mut Objects,
    progress: &'a mut Progress<'p>,
    empty: &'a [&'a str],
    /// Files with several hard links, by device and inode.
    links: HashMap<(u32, u32, u64), LeafId>,
    done: u64,
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
            return self.tree.link(path, *id);
        }
        let entry =
            [format!("/proc/self/fd/{}/", dir.as_raw_fd()).as_bytes(), name.to_bytes()].concat();
        let to_stat = |path: &[u8]| -> Result<Stat> {
            Ok(to_stat(&found, read_xattrs(path, OsStr::from_bytes(&entry))?))
        };
        let content = match kind {
            FileType::Directory => {
                self.tree.directory(path, to_stat(path)?)?;
                let left_out = self.empty.iter().any(|e| e.as_bytes() == path.as_slice());
                if left_out || found.stx_mnt_id != mount {
                    return Ok(());
                }
                let fd = open(dir, name, OFlags::DIRECTORY).map_err(Error::io("open", shown))?;
                return self.directory(&fd, path, mount);
            }
            FileType::RegularFile => {
                let file = open(dir, name, OFlags::NONBLOCK).map_err(Error::io("open", shown))?;
                let (done, progress) = (&mut self.done, &mut self.progress);
                let note = shown.to_string_lossy();
                let body = copy_body(&file, shown, self.objects, &mut |bytes| {
                    *done += bytes;
                    progress(*done, None, &note);
                })?;
                LeafContent::Regular(body)
            }
            FileType::Symlink => {
                let target = readlinkat(dir, name, Vec::new()).map_err(Error::io("read", shown))?;
                LeafContent::Symlink(OsStr::from_bytes(target.to_bytes()).into())
            }
            FileType::Fifo => LeafContent::Fifo,
            // Useless without the process that made it, which makes a new one.
            FileType::Socket => return Ok(()),
            _ => return self.tree.leave_out(path),
        };
        let id = self.tree.file(path, to_stat(path)?, content)?;
        if found.stx_nlink > 1 {
            self.links.insert(key, id);
        }
        Ok(())
    }
}
