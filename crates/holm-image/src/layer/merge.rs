//! Computing a guest's new image and new upper directory from what it has and what lies below.
//!
//! Each directory of the upper directory is read beside a [`View`] of the layers below: of the
//! directory that overlayfs merges with it, which is another one where it was renamed, and none
//! where it is opaque. What the guest sees there is written out in the image, unless the base has
//! it at the same place anyway; what the base has there and the guest does not see gets a whiteout.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use composefs::INLINE_CONTENT_MAX_V0;
use composefs::fsverity::{FsVerityHashValue, Sha256HashValue};
use composefs::generic_tree::LeafId;
use composefs::tree::{Inode, Leaf, LeafContent, RegularFile, Stat};
use rustix::fs::{
    FileType, Statx, Timespec, Timestamps, XattrFlags, fgetxattr, fremovexattr, fsetxattr,
    readlinkat,
};
use rustix::io::Errno;

use super::digests::Digests;
use super::plan::PlanDir;
use super::upper::{Entry, METACOPY, Marks, UpperDir};
use super::view::{Below, Dir, Image, Layers, View};
use crate::error::{Error, Result};
use crate::tree::Content;

/// The most entries that an image may have, because a tree is held in memory.
const ENTRIES_MAX: u64 = 3_000_000;

const CAPABILITY: &str = "security.capability";
/// Where the capabilities of a file are while it is written to. The guest does not see it.
const SAVED_CAPABILITY: &str = "trusted.overlay.holm.capability";
/// Where its times are meanwhile: seconds and nanoseconds of the last access, and of the last
/// modification, in decimal.
const SAVED_TIMES: &str = "trusted.overlay.holm.times";

/// What a merge needs, and what it has made so far.
pub struct Merge<'a> {
    pub layers: Layers<'a>,
    pub digests: &'a Digests,
    pub store: &'a Path,
    /// The leaves of the new image.
    pub fs: Image,
    /// The leaves that were copied from a layer below, so that hard links stay links.
    copied: HashMap<*const Leaf<Sha256HashValue>, LeafId>,
    entries: u64,
    /// The objects of files that stay, by inode number.
    pub kept: HashMap<u64, String>,
    /// Files whose bodies have become objects.
    pub unified: u64,
    /// What these took on the disk, in bytes.
    pub freed: u64,
}

/// Where an entry goes.
enum Place {
    Image(LeafId),
    Upper,
}

impl<'a> Merge<'a> {
    pub fn new(layers: Layers<'a>, digests: &'a Digests, store: &'a Path, root: Stat) -> Self {
        Self {
            layers,
            digests,
            store,
            fs: Image::new(root),
            copied: HashMap::new(),
            entries: 0,
            kept: HashMap::new(),
            unified: 0,
            freed: 0,
        }
    }

    /// Merges a directory. `below` is what the base has at its place.
    pub fn upper(
        &mut self,
        upper: &UpperDir,
        stat: Stat,
        view: View<'a>,
        below: Option<&'a Dir>,
    ) -> Result<(Dir, PlanDir)> {
        let (mut image, mut plan) = (Dir::new(stat.clone()), PlanDir::new(stat));
        let mut seen = HashSet::new();
        for entry in upper.entries()? {
            let name = entry.os_name();
            seen.insert(name.to_owned());
            if entry.is_whiteout() {
                if below.is_some_and(|dir| dir.lookup(name).is_some()) {
                    plan.whiteouts.push(name.to_owned());
                }
            } else if entry.kind() == FileType::Directory {
                self.directory(upper, &entry, view, below, (&mut image, &mut plan))?;
            } else {
                match self.file(upper, &entry, view)? {
                    Place::Image(id) => drop(image.insert(name, Inode::leaf(id))),
                    Place::Upper => plan.kept.push(entry.name),
                }
            }
        }
        self.rest(view, below, &seen, &mut image, &mut plan)?;
        Ok((image, plan))
    }

    fn directory(
        &mut self,
        upper: &UpperDir,
        entry: &Entry,
        view: View<'a>,
        below: Option<&'a Dir>,
        (image, plan): (&mut Dir, &mut PlanDir),
    ) -> Result<()> {
        let name = entry.os_name();
        let gone =
            || Error::refused(&upper.path_of(&entry.name), "it changes; is the guest running?");
        let child = upper.directory(&entry.name)?.ok_or_else(gone)?;
        let (stat, marks) = upper.metadata(&entry.name, &entry.found)?;
        let pinned = stat.is_none();
        let stat = stat.unwrap_or_else(|| crate::metadata::to_stat(&entry.found, BTreeMap::new()));
        let merged = match (&marks.redirect, marks.opaque) {
            (_, true) => Below::Nothing,
            (Some(redirect), _) => self.layers.redirected(view, redirect),
            (None, _) => self.layers.look_up(view, name),
        };
        let merged = if let Below::Dir(view) = merged { view } else { View::default() };
        let (made, mut kept) = self.upper(&child, stat, merged, directory_in(below, name))?;
        kept.pinned = pinned;
        self.count(&child.path)?;
        image.insert(name, Inode::Directory(Box::new(made)));
        if !kept.is_empty() {
            plan.dirs.push((name.to_owned(), kept));
        }
        Ok(())
    }

    /// Adds what the layers below have in a directory and the upper directory says nothing about,
    /// and hides what only the base's directory at this place has.
    fn rest(
        &mut self,
        view: View<'a>,
        below: Option<&'a Dir>,
        seen: &HashSet<OsString>,
        image: &mut Dir,
        plan: &mut PlanDir,
    ) -> Result<()> {
        let is_over = view.is_over(below);
        let names =
            |dir: Option<&'a Dir>| dir.into_iter().flat_map(Dir::entries).map(|(name, _)| name);
        let others = if is_over { None } else { view.base };
        for name in names(view.image).chain(names(others)) {
            if seen.contains(name) || image.lookup(name).is_some() {
                continue;
            }
            match self.layers.look_up(view, name) {
                Below::Nothing => {}
                Below::Leaf(leaf) => {
                    let id = self.copy(leaf)?;
                    image.insert(name, Inode::leaf(id));
                }
                Below::Dir(view) => {
                    let (made, kept) = self.lower(view, directory_in(below, name))?;
                    image.insert(name, Inode::Directory(Box::new(made)));
                    if !kept.is_empty() {
                        plan.dirs.push((name.to_owned(), kept));
                    }
                }
            }
        }
        if !is_over {
            let hidden =
                names(below).filter(|name| !seen.contains(*name) && image.lookup(name).is_none());
            plan.whiteouts.extend(hidden.map(OsStr::to_owned));
        }
        Ok(())
    }

    /// A directory that only the layers below have.
    fn lower(&mut self, view: View<'a>, below: Option<&'a Dir>) -> Result<(Dir, PlanDir)> {
        let stat = view.image.or(view.base).map(|dir| dir.stat.clone()).unwrap_or_default();
        let (mut image, mut plan) = (Dir::new(stat.clone()), PlanDir::new(stat));
        self.count(b"")?;
        self.rest(view, below, &HashSet::new(), &mut image, &mut plan)?;
        Ok((image, plan))
    }

    fn file(&mut self, upper: &UpperDir, entry: &Entry, view: View<'a>) -> Result<Place> {
        let (name, found) = (&entry.name, &entry.found);
        let (stat, marks) = upper.metadata(name, found)?;
        if marks.metacopy {
            let content = self.body_below(upper, name, &marks, view)?;
            return match stat {
                Some(stat) if found.stx_nlink == 1 => self.add(upper, name, stat, content),
                _ => {
                    self.complete(upper, name, found, &content)?;
                    Ok(Place::Upper)
                }
            };
        }
        // A copy-up takes hard links apart, so a file with several names stays what it is.
        let Some(stat) = stat.filter(|_| found.stx_nlink == 1) else { return Ok(Place::Upper) };
        let content = match entry.kind() {
            FileType::Symlink => {
                let target = readlinkat(&upper.file, name.as_c_str(), Vec::new())
                    .map_err(Error::io("read the guest's", &upper.shown_at(name)))?;
                LeafContent::Symlink(OsStr::from_bytes(target.to_bytes()).into())
            }
            FileType::Fifo => LeafContent::Fifo,
            FileType::RegularFile => match self.regular(upper, name, found)? {
                Some(body) => LeafContent::Regular(body),
                None => return Ok(Place::Upper),
            },
            _ => return Ok(Place::Upper),
        };
        self.add(upper, name, stat, content)
    }

    /// The body of a regular file, if an image can have it.
    fn regular(
        &mut self,
        upper: &UpperDir,
        name: &CStr,
        found: &Statx,
    ) -> Result<Option<RegularFile<Sha256HashValue>>> {
        let size = found.stx_size;
        if size <= INLINE_CONTENT_MAX_V0 as u64 {
            let Some((file, found)) = upper.regular(name)? else { return Ok(None) };
            let mut body = vec![0; usize::try_from(size).unwrap_or(0)];
            file.read_exact_at(&mut body, 0).map_err(Error::io("read", &upper.shown_at(name)))?;
            self.freed += found.stx_blocks * 512;
            return Ok(Some(RegularFile::Inline(body.into())));
        }
        let Some(object) = self.digests.find(found) else { return Ok(None) };
        let is_there = std::fs::metadata(self.store.join(object)).is_ok_and(|o| o.len() == size);
        let Some(id) = digest_of(object).filter(|_| is_there) else {
            self.kept.insert(found.stx_ino, object.to_owned());
            return Ok(None);
        };
        self.unified += 1;
        self.freed += found.stx_blocks * 512;
        Ok(Some(RegularFile::External(id, size)))
    }

    /// What a metacopy stands for.
    fn body_below(
        &self,
        upper: &UpperDir,
        name: &CStr,
        marks: &Marks,
        view: View<'a>,
    ) -> Result<Content> {
        let below = match &marks.redirect {
            Some(redirect) => self.layers.redirected(view, redirect),
            None => self.layers.look_up(view, OsStr::from_bytes(name.to_bytes())),
        };
        match below {
            Below::Leaf(Leaf { content: content @ LeafContent::Regular(_), .. }) => {
                Ok(content.clone())
            }
            _ => Err(Error::refused(
                &upper.path_of(name),
                "only its metadata are in the guest's private layer, and the layers below do not \
                 have the file; is this the base that the guest was made from?",
            )),
        }
    }

    /// Gives a metacopy its body, as a copy-up does: first the body, then the mark is removed. The
    /// guest sees the same before and after. The kernel takes the capabilities and times of a file
    /// that is written to; the next switch gives them back if this one is killed before it does.
    fn complete(
        &self,
        upper: &UpperDir,
        name: &CStr,
        found: &Statx,
        content: &Content,
    ) -> Result<()> {
        let shown = upper.shown_at(name);
        let fail = || Error::io("write the guest's", &shown);
        let changed = || Error::io("keep the capabilities of the guest's", &shown);
        let Some((read, _)) = upper.regular(name)? else { return Ok(()) };
        // Opened anew for writing: the inode is the one that was looked at.
        let path = PathBuf::from(format!("/proc/self/fd/{}", read.as_raw_fd()));
        let file = File::options().write(true).open(&path).map_err(fail())?;
        let capability = saved_capability(&file).map_err(changed())?;
        let times = saved_times(&file, found).map_err(changed())?;
        match content {
            LeafContent::Regular(RegularFile::Inline(body)) => {
                file.write_all_at(body, 0).map_err(fail())?;
            }
            LeafContent::Regular(RegularFile::External(id, _)) => {
                let object = self.store.join(id.to_object_pathname());
                let mut body = File::open(&object).map_err(Error::io("open", &object))?;
                std::io::copy(&mut body, &mut &file).map_err(fail())?;
            }
            _ => return Err(Error::refused(&upper.path_of(name), "it has no body")),
        }
        if let Some(value) = &capability {
            fsetxattr(&file, CAPABILITY, value, XattrFlags::empty()).map_err(changed())?;
        }
        rustix::fs::futimens(&file, &times)
            .map_err(Error::io("set the times of the guest's", &shown))?;
        file.sync_all().map_err(fail())?;
        let complete = || Error::io("complete the guest's", &shown);
        fremovexattr(&file, METACOPY).map_err(complete())?;
        if capability.is_some() {
            fremovexattr(&file, SAVED_CAPABILITY).map_err(complete())?;
        }
        fremovexattr(&file, SAVED_TIMES).map_err(complete())
    }

    fn add(
        &mut self,
        upper: &UpperDir,
        name: &CStr,
        stat: Stat,
        content: Content,
    ) -> Result<Place> {
        self.count(&upper.path_of(name))?;
        Ok(Place::Image(self.fs.push_leaf(stat, content)))
    }

    /// Copies a file of a layer below.
    fn copy(&mut self, leaf: &'a Leaf<Sha256HashValue>) -> Result<LeafId> {
        self.count(b"")?;
        if let Some(id) = self.copied.get(&std::ptr::from_ref(leaf)) {
            return Ok(*id);
        }
        let id = self.fs.push_leaf(leaf.stat.clone(), leaf.content.clone());
        self.copied.insert(leaf, id);
        Ok(id)
    }

    fn count(&mut self, path: &[u8]) -> Result<()> {
        self.entries += 1;
        if self.entries > ENTRIES_MAX {
            let reason = format!("with it, the guest has more than {ENTRIES_MAX} changed files");
            return Err(Error::refused(path, reason));
        }
        Ok(())
    }
}

/// The capabilities of a file, saved in another attribute while it is written to.
fn saved_capability(file: &File) -> rustix::io::Result<Option<Vec<u8>>> {
    // `struct vfs_ns_cap_data` is the longest form.
    let mut value = [0; 24];
    let mut read = |name: &str| match fgetxattr(file, name, &mut value[..]) {
        Ok(length) => Ok(Some(value[..length].to_vec())),
        Err(Errno::NODATA) => Ok(None),
        Err(errno) => Err(errno),
    };
    let Some(value) = read(CAPABILITY)? else { return read(SAVED_CAPABILITY) };
    fsetxattr(file, SAVED_CAPABILITY, &value, XattrFlags::empty())?;
    Ok(Some(value))
}

/// The times of a file, saved in an attribute while it is written to.
fn saved_times(file: &File, found: &Statx) -> rustix::io::Result<Timestamps> {
    let mut text = [0; 96];
    let saved = match fgetxattr(file, SAVED_TIMES, &mut text[..]) {
        Ok(length) => parse_times(&text[..length]),
        Err(Errno::NODATA) => None,
        Err(errno) => return Err(errno),
    };
    if let Some(times) = saved {
        return Ok(times);
    }
    let (accessed, modified) = (found.stx_atime, found.stx_mtime);
    let text = format!(
        "{} {} {} {}",
        accessed.tv_sec, accessed.tv_nsec, modified.tv_sec, modified.tv_nsec
    );
    fsetxattr(file, SAVED_TIMES, text.as_bytes(), XattrFlags::empty())?;
    parse_times(text.as_bytes()).ok_or(Errno::INVAL)
}

fn parse_times(text: &[u8]) -> Option<Timestamps> {
    let mut numbers = std::str::from_utf8(text).ok()?.split(' ').map(|word| word.parse().ok());
    let mut time = || Some(Timespec { tv_sec: numbers.next()??, tv_nsec: numbers.next()?? });
    Some(Timestamps { last_access: time()?, last_modification: time()? })
}

fn directory_in<'a>(dir: Option<&'a Dir>, name: &OsStr) -> Option<&'a Dir> {
    dir.and_then(|dir| dir.get_directory(name).ok())
}

fn digest_of(object: &str) -> Option<Sha256HashValue> {
    Sha256HashValue::from_hex(object.replace('/', "")).ok()
}
