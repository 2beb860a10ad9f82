//! Reading a directory of the host.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use composefs::fsverity::Sha256HashValue;
use composefs::generic_tree::LeafId;
use composefs::tree::{LeafContent, RegularFile, Stat};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, SeekFrom, Statx, StatxFlags, lgetxattr, llistxattr,
    openat, readlinkat, seek, statx,
};
use rustix::io::Errno;

use super::Progress;
use crate::error::{Error, Result};
use crate::objects::{Objects, PIECE};
use crate::tree::Tree;
use crate::xattrs::{self, Xattrs};

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
    let mut scan = Scan {
        tree,
        objects,
        progress,
        empty,
        links: HashMap::new(),
        done: 0,
        buffer: vec![0; PIECE],
    };
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
    buffer: Vec<u8>,
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
                LeafContent::Regular(self.body(&file, shown)?)
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

    /// Reads a file's data and holes.
    fn body(&mut self, file: &File, path: &Path) -> Result<RegularFile<Sha256HashValue>> {
        let note = path.to_string_lossy();
        let mut body = self.objects.body();
        let mut at = 0;
        loop {
            let data = match seek(file, SeekFrom::Data(at)) {
                Ok(data) => data,
                // The rest is a hole.
                Err(Errno::NXIO) => {
                    let end = file.metadata().map_err(Error::io("stat", path))?.len();
                    body.hole(end.saturating_sub(at))?;
                    return body.end();
                }
                Err(e) => return Err(Error::io("read", path)(e)),
            };
            body.hole(data - at)?;
            let hole = seek(file, SeekFrom::Hole(data)).map_err(Error::io("read", path))?;
            at = data;
            while at < hole {
                let want = usize::try_from(hole - at).unwrap_or(PIECE).min(PIECE);
                let n =
                    file.read_at(&mut self.buffer[..want], at).map_err(Error::io("read", path))?;
                if n == 0 {
                    return body.end(); // it has been truncated
                }
                body.data(&self.buffer[..n])?;
                at += n as u64;
                self.done += n as u64;
                (self.progress)(self.done, None, &note);
            }
        }
    }
}

fn open(dir: &File, name: &CStr, flags: OFlags) -> rustix::io::Result<File> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty()).map(File::from)
}

fn stat(dir: impl AsFd, name: &CStr) -> rustix::io::Result<Statx> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    statx(dir, name, flags, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)
}

fn to_stat(found: &Statx, xattrs: Xattrs) -> Stat {
    Stat {
        st_mode: u32::from(found.stx_mode) & 0o7777,
        st_uid: found.stx_uid,
        st_gid: found.stx_gid,
        st_mtim_sec: found.stx_mtime.tv_sec,
        st_mtim_nsec: found.stx_mtime.tv_nsec,
        xattrs,
    }
}

/// The extended attributes of the file at `entry`: a path through /proc, so that those of symbolic
/// links can be read.
fn read_xattrs(path: &[u8], entry: impl AsRef<Path>) -> Result<Xattrs> {
    let (entry, shown) = (entry.as_ref(), Path::new(OsStr::from_bytes(path)));
    let mut names = vec![0; 1 << 16];
    let listed = match llistxattr(entry, &mut names) {
        Ok(listed) => listed,
        Err(Errno::OPNOTSUPP) => 0,
        Err(e) => return Err(Error::io("list the attributes of", shown)(e)),
    };
    let mut xattrs = Xattrs::new();
    let mut value = vec![0; if listed > 0 { 1 << 16 } else { 0 }];
    for name in names[..listed].split(|b| *b == 0).filter(|name| !name.is_empty()) {
        let length = match lgetxattr(entry, OsStr::from_bytes(name), &mut value) {
            Ok(length) => length,
            Err(Errno::NODATA) => continue,
            Err(e) => return Err(Error::io("read the attributes of", shown)(e)),
        };
        xattrs::add(&mut xattrs, path, name, &value[..length])?;
    }
    Ok(xattrs)
}
