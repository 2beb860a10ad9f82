//! The metadata of a base's files, in memory. Because a source is read into memory, not unpacked,
//! a hostile archive cannot write anywhere.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use composefs::INLINE_CONTENT_MAX_V0;
use composefs::erofs::format::FormatVersion;
use composefs::erofs::writer::{ValidatedFileSystem, mkfs_erofs_versioned};
use composefs::fsverity::Sha256HashValue;
use composefs::generic_tree::LeafId;
use composefs::tree::{Directory, FileSystem, Inode, Leaf, LeafContent, RegularFile, Stat};

use crate::error::{Error, Result};

/// The content of a file that is not a directory.
pub(crate) type Content = LeafContent<Sha256HashValue>;

/// The longest name of a file, as everywhere on Linux.
const NAME_MAX: usize = 255;
/// The longest path and target of a symbolic link, without the terminating zero.
const PATH_MAX: usize = 4095;
/// The composefs writer visits the tree recursively, so its depth needs a bound.
const DEPTH_MAX: usize = 1000;

/// The most memory that a tree may take: some three million files. A few megabytes of a compressed
/// archive could take more than the host has. The image takes about as much again.
const BYTES_MAX: u64 = 1 << 30;
/// What a file takes beside its name, attributes and content.
const FILE_BYTES: u64 = 256;

/// All files of a base. Bodies of more than 64 bytes are in [`Objects`](crate::Objects).
#[derive(Debug)]
pub struct Tree {
    fs: FileSystem<Sha256HashValue>,
    /// How many device nodes in /dev were left out.
    devices: u64,
    /// About how many bytes of memory the tree takes, and may take.
    bytes: u64,
    bytes_max: u64,
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// A tree with an empty root directory.
    pub fn new() -> Self {
        let fs = FileSystem::new(directory_stat());
        Self { fs, devices: 0, bytes: 0, bytes_max: BYTES_MAX }
    }

    /// Adds a directory, or sets the metadata of one that exists.
    pub(crate) fn directory(&mut self, path: &[u8], stat: Stat) -> Result<()> {
        let parts = split(path)?;
        self.take(path, &stat, 0)?;
        let Some((name, parents)) = parts.split_last() else {
            self.fs.set_root_stat(stat);
            return Ok(());
        };
        let parent = self.parent(path, parents)?;
        if let Some(Inode::Leaf(..)) = parent.lookup(name) {
            return Err(Error::refused(path, "it is a file and a directory at once"));
        }
        parent.merge(name, Inode::Directory(Box::new(Directory::new(stat))));
        Ok(())
    }

    /// Adds a file that is not a directory. It replaces one of the same name, as tar does.
    pub(crate) fn file(&mut self, path: &[u8], stat: Stat, content: Content) -> Result<LeafId> {
        if let LeafContent::Symlink(target) = &content
            && !(1..=PATH_MAX).contains(&target.len())
        {
            let reason = format!(
                "a symbolic link target of {} bytes; it must have 1 to {PATH_MAX}",
                target.len()
            );
            return Err(Error::refused(path, reason));
        }
        let content_bytes = match &content {
            LeafContent::Symlink(target) => target.len(),
            // Whether it lies in the image is known only when it is stored.
            LeafContent::Regular(_) => INLINE_CONTENT_MAX_V0,
            _ => 0,
        };
        self.take(path, &stat, content_bytes)?;
        let id = self.fs.push_leaf(stat, content);
        self.link(path, id)?;
        Ok(id)
    }

    /// Sets the body of a file.
    pub(crate) fn set_body(&mut self, id: LeafId, body: RegularFile<Sha256HashValue>) {
        self.fs.leaves[id.0].content = LeafContent::Regular(body);
    }

    /// Leaves out a device node in /dev, where a guest gets those that it may have. Anywhere else
    /// it is refused, because a guest could not use it, and what it is for would fail there.
    pub(crate) fn leave_out(&mut self, path: &[u8]) -> Result<()> {
        match split(path)?.as_slice() {
            [dev, _, ..] if *dev == "dev" => {
                self.devices += 1;
                Ok(())
            }
            _ => Err(Error::refused(
                path,
                "a device node outside of /dev; no guest could use it, so leave it out of the \
                 source (`tar --exclude=PATH`), and give the guest the device by its key `devices`",
            )),
        }
    }

    /// How many device nodes were left out.
    pub fn left_out(&self) -> u64 {
        self.devices
    }

    /// Counts what a file takes, and refuses it if that is too much.
    fn take(&mut self, path: &[u8], stat: &Stat, content: usize) -> Result<()> {
        let attributes = stat.xattrs.iter().map(|(name, value)| name.len() + value.len());
        let bytes = path.len() + content + attributes.sum::<usize>();
        self.bytes += FILE_BYTES + bytes as u64;
        if self.bytes > self.bytes_max {
            let reason = format!(
                "with it, names and attributes of the source take more than {} MiB of memory; \
                 leave files out of the source",
                self.bytes_max >> 20
            );
            return Err(Error::refused(path, reason));
        }
        Ok(())
    }

    /// Adds a hard link to a file.
    pub(crate) fn link(&mut self, path: &[u8], id: LeafId) -> Result<()> {
        let parts = split(path)?;
        let both = || Error::refused(path, "it is a file and a directory at once");
        let (name, parents) = parts.split_last().ok_or_else(both)?;
        self.take(path, &directory_stat(), 0)?;
        let parent = self.parent(path, parents)?;
        if let Some(Inode::Directory(_)) = parent.lookup(name) {
            return Err(both());
        }
        parent.insert(name, Inode::leaf(id));
        Ok(())
    }

    /// The file at `path`, if it is not a directory.
    pub(crate) fn find(&self, path: &[u8]) -> Option<LeafId> {
        let parts = split(path).ok()?;
        let (name, parents) = parts.split_last()?;
        let mut dir = &self.fs.root;
        for part in parents {
            dir = dir.get_directory(part).ok()?;
        }
        dir.leaf_id(name).ok()
    }

    /// The metadata and content of a file.
    pub(crate) fn leaf(&self, id: LeafId) -> &Leaf<Sha256HashValue> {
        &self.fs.leaves[id.0]
    }

    /// The root directory.
    pub(crate) fn root(&self) -> &Directory<Sha256HashValue> {
        &self.fs.root
    }

    /// The number of files, directories and links, without the root.
    pub fn count(&self) -> u64 {
        fn below(dir: &Directory<Sha256HashValue>) -> u64 {
            dir.inodes()
                .map(|inode| match inode {
                    Inode::Directory(dir) => 1 + below(dir),
                    Inode::Leaf(..) => 1,
                })
                .sum()
        }
        below(&self.fs.root)
    }

    /// The metadata image: EROFS in the composefs layout, version 1, which stores nanoseconds.
    pub fn image(self) -> Result<Box<[u8]>> {
        write(self.fs)
    }

    /// The directory `parents`. Missing directories are made, because archives may omit them.
    fn parent(
        &mut self,
        path: &[u8],
        parents: &[&OsStr],
    ) -> Result<&mut Directory<Sha256HashValue>> {
        let mut dir = &mut self.fs.root;
        for part in parents {
            match dir.lookup(part) {
                Some(Inode::Directory(_)) => {}
                None => {
                    self.bytes += FILE_BYTES;
                    let new = Box::new(Directory::new(directory_stat()));
                    dir.insert(part, Inode::Directory(new));
                }
                Some(Inode::Leaf(..)) => {
                    let reason =
                        format!("it lies below {}, which is not a directory", part.display());
                    return Err(Error::refused(path, reason));
                }
            }
            dir = dir.get_directory_mut(part).map_err(|e| Error::refused(path, e.to_string()))?;
        }
        Ok(dir)
    }
}

/// Writes an image.
pub(crate) fn write(mut fs: FileSystem<Sha256HashValue>) -> Result<Box<[u8]>> {
    fs.compact();
    let fs = ValidatedFileSystem::new(fs).map_err(|e| Error::source("the image", e.to_string()))?;
    Ok(mkfs_erofs_versioned(&fs, FormatVersion::V1))
}

/// The metadata of a directory that a source does not describe.
fn directory_stat() -> Stat {
    Stat {
        st_mode: 0o755,
        st_uid: 0,
        st_gid: 0,
        st_mtim_sec: 0,
        st_mtim_nsec: 0,
        xattrs: BTreeMap::new(),
    }
}

/// The components of `path`, without a leading `/` and `.`.
fn split(path: &[u8]) -> Result<Vec<&OsStr>> {
    let refused = |reason: &str| Err(Error::refused(path, reason));
    let parts = path.split(|b| *b == b'/').filter(|part| !part.is_empty() && *part != b".");
    let parts: Vec<&OsStr> = parts.map(OsStr::from_bytes).collect();
    if parts.iter().any(|part| *part == "..") {
        return refused("`..` in a name leads out of the tree");
    }
    if path.contains(&0) {
        return refused("a name with a zero byte");
    }
    if path.len() > PATH_MAX || parts.len() > DEPTH_MAX {
        return refused("the path is too long");
    }
    if parts.iter().any(|part| part.len() > NAME_MAX) {
        return refused("a name is longer than 255 bytes");
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Add = Box<dyn FnMut(&mut Tree, u64) -> Result<()>>;

    /// Entries, names, links, attributes, contents and parents that an archive omits: each takes
    /// memory.
    #[test]
    fn memory_is_bounded() {
        const ROOM: u64 = 100 << 10;
        let full = |mut add: Add| {
            let mut tree = Tree { bytes_max: ROOM, ..Tree::new() };
            let error = (0..2 * ROOM / FILE_BYTES).find_map(|n| add(&mut tree, n).err());
            error.expect("it is refused").to_string()
        };
        let name = |n: u64| n.to_string().into_bytes();
        let said = [
            full(Box::new(move |tree, n| tree.directory(&name(n), directory_stat()))),
            full(Box::new(move |tree, n| {
                tree.file(&name(n), directory_stat(), LeafContent::Fifo).map(drop)
            })),
            full(Box::new(move |tree, n| {
                if n == 0 {
                    tree.file(b"0", directory_stat(), LeafContent::Fifo)?;
                }
                let id = tree.find(b"0").expect("the first");
                tree.link(&name(n + 1), id)
            })),
            full(Box::new(move |tree, n| {
                if n > 2 {
                    return Ok(());
                }
                tree.directory(format!("{n}{}", "/d".repeat(200)).as_bytes(), directory_stat())
            })),
            full(Box::new(move |tree, n| {
                let value = vec![7_u8; 60 << 10].into();
                let xattrs = BTreeMap::from([(OsStr::new("user.a").into(), value)]);
                let stat = Stat { xattrs, ..directory_stat() };
                if n > 2 { Ok(()) } else { tree.directory(&name(n), stat) }
            })),
        ];
        for said in said {
            assert!(said.contains("leave files out"), "{said}");
        }
    }
}
