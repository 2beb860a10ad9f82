//! Writing a guest's new layer beside the one that it has.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use composefs::erofs::reader::erofs_to_filesystem;
use composefs::fsverity::FsVerityHashValue;
use composefs::tree::{Inode, LeafContent, RegularFile, Stat};
use holm_sys::project;
use openssl::sha::{Sha256, sha256};
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags,
    chmodat, chownat, linkat, lsetxattr, makedev, mkdirat, mknodat, openat, utimensat,
};
use rustix::io::Errno;

use super::digests::Digests;
use super::merge::Merge;
use super::plan::PlanDir;
use super::upper::UpperDir;
use super::view::{Image, Layers, TREE};
use crate::error::{Error, Result};
use crate::metadata::for_each_xattr;
use crate::tree;

/// Where the superblock of an image has its UUID: 16 bytes.
const UUID: usize = 1024 + 48;

/// What a new layer is made from.
#[derive(Debug)]
pub struct Rewrite<'a> {
    /// The image of the guest's base.
    pub base: &'a Path,
    /// The directory with the guest's private layer.
    pub disk: &'a Path,
    /// What is known about the files in it.
    pub digests: &'a Digests,
    /// The object store. The caller keeps it from being collected.
    pub store: &'a Path,
}

/// What a new layer contains.
#[derive(Debug)]
pub struct Rewritten {
    /// The guest's image.
    pub image: Box<[u8]>,
    /// The path below the store and the length of every object in it, sorted.
    pub objects: BTreeMap<String, u64>,
    /// How many files of the guest have become objects.
    pub files: u64,
    /// What these took on the disk, in bytes.
    pub freed: u64,
    plan: PlanDir,
    kept: HashMap<u64, String>,
}

impl Rewrite<'_> {
    /// Computes the new layer. Nothing that the guest sees changes.
    pub fn plan(&self) -> Result<Rewritten> {
        let base = read_image(self.base)?;
        let own = self.disk.join("image");
        let own = if own.exists() { Some(read_image(&own)?) } else { None };
        let layers = Layers { image: own.as_ref(), base: &base };
        let upper = UpperDir::root(&self.disk.join("upper"))?;
        let found = crate::metadata::stat(&upper.file, c"")
            .map_err(Error::io("look at", &self.disk.join("upper")))?;
        let (stat, _) = upper.metadata(c"", &found)?;
        let stat = stat.unwrap_or_else(|| crate::metadata::to_stat(&found, BTreeMap::new()));
        let mut merge = Merge::new(layers, self.digests, self.store, stat.clone());
        let (made, mut plan) = merge.upper(&upper, stat, layers.root(), Some(&base.root))?;
        plan.pinned = true;
        let Merge { mut fs, kept, unified, freed, .. } = merge;
        fs.root.insert(OsStr::new(TREE), Inode::Directory(Box::new(made)));
        let objects = objects_of(&fs);
        let mut image = tree::write(fs)?;
        identify(&mut image);
        Ok(Rewritten { image, objects, files: unified, freed, plan, kept })
    }
}

impl Rewritten {
    /// Writes the new upper and work directories into `new`, which is empty. What stays gets a
    /// second name there.
    pub fn write(&self, disk: &Path, new: &Path) -> Result<()> {
        let old = File::open(disk.join("upper")).map_err(Error::io("open", &disk.join("upper")))?;
        let root = File::open(new).map_err(Error::io("open", new))?;
        write_dir(&root, OsStr::new("upper"), &self.plan, Some(&old), &new.join("upper"))?;
        let work = new.join("work");
        mkdirat(CWD, &work, Mode::RWXU).map_err(Error::io("make the directory", &work))?;
        let made = File::open(&work).map_err(Error::io("open", &work))?;
        limit_like(&old, &made).map_err(Error::io("set the project id of", &work))
    }

    /// What is known about the files of the new upper directory. Their second names, and the loss
    /// of the first, have changed their change times, but nobody has written to them.
    pub fn digests(&self, upper: &Path) -> Result<Digests> {
        let mut digests = Digests::default();
        self.known(&UpperDir::root(upper)?, &self.plan, &mut digests)?;
        Ok(digests)
    }

    fn known(&self, dir: &UpperDir, plan: &PlanDir, digests: &mut Digests) -> Result<()> {
        for name in &plan.kept {
            if let Some((_, found)) = dir.regular(name)?
                && let Some(object) = self.kept.get(&found.stx_ino)
            {
                digests.insert(&found, object.clone());
            }
        }
        for (name, plan) in &plan.dirs {
            let name = CString::new(name.as_bytes()).unwrap_or_default();
            if let Some(dir) = dir.directory(&name)? {
                self.known(&dir, plan, digests)?;
            }
        }
        Ok(())
    }
}

/// Makes a directory of the new upper directory.
fn write_dir(
    parent: &File,
    name: &OsStr,
    plan: &PlanDir,
    old: Option<&File>,
    shown: &Path,
) -> Result<()> {
    let fail = || Error::io("make the directory", shown);
    mkdirat(parent, name, Mode::RWXU).map_err(fail())?;
    let dir = open_dir(parent, name).map_err(fail())?;
    if let Some(old) = old {
        limit_like(old, &dir).map_err(Error::io("set the project id of", shown))?;
    }
    for name in &plan.whiteouts {
        mknodat(&dir, name, FileType::CharacterDevice, Mode::empty(), makedev(0, 0))
            .map_err(Error::io("make the whiteout", &shown.join(name)))?;
    }
    for name in &plan.kept {
        let old = old.ok_or_else(|| Error::refused(name.as_bytes(), "it was not there"))?;
        let at = shown.join(OsStr::from_bytes(name.to_bytes()));
        linkat(old, name.as_c_str(), &dir, name.as_c_str(), AtFlags::empty())
            .map_err(Error::io("link", &at))?;
    }
    for (name, child) in &plan.dirs {
        let old = old.and_then(|old| open_dir(old, name).ok());
        write_dir(&dir, name, child, old.as_ref(), &shown.join(name))?;
    }
    set_metadata(&dir, &plan.stat, old, shown)
}

fn set_metadata(dir: &File, stat: &Stat, old: Option<&File>, shown: &Path) -> Result<()> {
    let fail = || Error::io("set the metadata of", shown);
    let here = proc_path(dir);
    let owner = (Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)));
    chownat(CWD, &here, owner.0, owner.1, AtFlags::empty()).map_err(fail())?;
    chmodat(CWD, &here, Mode::from_raw_mode(stat.st_mode), AtFlags::empty()).map_err(fail())?;
    let set = |name: &[u8], value: &[u8]| {
        lsetxattr(&here, OsStr::from_bytes(name), value, XattrFlags::empty()).map_err(fail())
    };
    match old {
        // All of them, those that no image can hold among them.
        Some(old) => for_each_xattr(b"", &proc_path(old), |name, value| match name {
            b"trusted.overlay.opaque" | b"trusted.overlay.redirect" => Ok(()),
            _ => set(name, value),
        })?,
        None => stat.xattrs.iter().try_for_each(|(name, value)| set(name.as_bytes(), value))?,
    }
    // Files in it may have the inode numbers of files below.
    set(b"trusted.overlay.impure", b"y")?;
    let modified = Timespec { tv_sec: stat.st_mtim_sec, tv_nsec: stat.st_mtim_nsec.into() };
    let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let times = Timestamps { last_access: omit, last_modification: modified };
    utimensat(CWD, &here, &times, AtFlags::empty()).map_err(fail())
}

/// Gives a directory the project id of another, by which the guest's disk is limited. What is made
/// in it gets that too, and what has another cannot be linked into it.
fn limit_like(old: &File, new: &File) -> std::io::Result<()> {
    match project::get(old.as_fd()) {
        Ok((0, _)) => Ok(()),
        Ok((id, inherit)) => project::set(new.as_fd(), id, inherit),
        // This filesystem has no project ids.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NOTTY) => Ok(()),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error),
    }
}

fn open_dir(dir: &File, name: &OsStr) -> rustix::io::Result<File> {
    let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, name.as_c_str(), flags, Mode::empty()).map(File::from)
}

fn proc_path(dir: &File) -> PathBuf {
    format!("/proc/self/fd/{}/.", dir.as_raw_fd()).into()
}

/// Reads a metadata image.
pub fn read_image(path: &Path) -> Result<Image> {
    let bytes = fs::read(path).map_err(Error::io("read", path))?;
    erofs_to_filesystem(&bytes)
        .map_err(|e| Error::source(path.display().to_string(), format!("damaged: {e:#}")))
}

fn objects_of(fs: &Image) -> BTreeMap<String, u64> {
    let external = fs.leaves.iter().filter_map(|leaf| match &leaf.content {
        LeafContent::Regular(RegularFile::External(id, size)) => {
            Some((id.to_object_pathname(), *size))
        }
        _ => None,
    });
    external.collect()
}

/// Gives an image a UUID. Base images have none, and overlayfs keeps the inode number of a file
/// over its copy-up only where it can tell the layers apart.
fn identify(image: &mut [u8]) {
    let digest = sha256(image);
    image[UUID..UUID + 16].copy_from_slice(&digest[..16]);
}

/// Whether an image is the one that has got its UUID.
pub fn has_identity(image: &[u8]) -> bool {
    let (Some(before), Some(uuid)) = (image.get(..UUID), image.get(UUID..UUID + 16)) else {
        return false;
    };
    let mut hasher = Sha256::new();
    for part in [before, &[0; 16], &image[UUID + 16..]] {
        hasher.update(part);
    }
    hasher.finish()[..16] == *uuid
}
