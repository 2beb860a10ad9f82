//! Reading the upper directory of an overlay, with the attributes by which overlayfs marks files
//! in it (Documentation/filesystems/overlayfs.rst of the kernel).

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use composefs::tree::Stat;
use rustix::fs::{Dir, FileType, OFlags, Statx};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::metadata::{for_each_xattr, open, stat, to_stat};
use crate::xattrs::{self, Xattrs};

const OVERLAY: &[u8] = b"trusted.overlay.";
/// Where `merge.rs` saves the capabilities of a file that it writes to.
const SAVED_CAPABILITY: &[u8] = b"holm.capability";
/// Where it saves its times.
const SAVED_TIMES: &[u8] = b"holm.times";
/// Marks a file whose body the layers below have.
pub const METACOPY: &str = "trusted.overlay.metacopy";
/// Directories that are nested deeper are refused: each takes a descriptor while it is read.
const DEPTH_MAX: usize = 256;

/// A directory of an upper directory.
#[derive(Debug)]
pub struct UpperDir {
    pub file: File,
    /// Its path in the guest, for messages.
    pub path: Vec<u8>,
    depth: usize,
}

/// What overlayfs says about a file in its attributes.
#[derive(Debug, Default)]
pub struct Marks {
    /// The directory hides what is below it.
    pub opaque: bool,
    /// Where the layers below have it: a path, or another name in the same directory.
    pub redirect: Option<Vec<u8>>,
    /// The layers below have its body.
    pub metacopy: bool,
}

/// An entry of an upper directory.
#[derive(Debug)]
pub struct Entry {
    pub name: CString,
    pub found: Statx,
}

impl UpperDir {
    /// Opens the upper directory itself.
    pub fn root(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        Ok(Self { file, path: Vec::new(), depth: 0 })
    }

    /// Its entries, sorted by name. Those that disappear meanwhile are left out.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let shown = self.shown_at(c"");
        let fail = || Error::io("read the guest's", &shown);
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.file).map_err(fail())? {
            let name = entry.map_err(fail())?.file_name().to_owned();
            if ![c".", c".."].contains(&name.as_c_str()) {
                names.push(name);
            }
        }
        names.sort();
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            match stat(&self.file, &name) {
                Ok(found) => entries.push(Entry { name, found }),
                Err(Errno::NOENT) => {}
                Err(e) => return Err(Error::io("look at the guest's", &self.shown_at(&name))(e)),
            }
        }
        Ok(entries)
    }

    /// Opens a directory in it; `None` if it is no longer one.
    pub fn directory(&self, name: &CStr) -> Result<Option<Self>> {
        let path = self.path_of(name);
        if self.depth == DEPTH_MAX {
            let reason = format!(
                "it lies deeper than {DEPTH_MAX} directories; this guest cannot be unified"
            );
            return Err(Error::refused(&path, reason));
        }
        match open(&self.file, name, OFlags::DIRECTORY) {
            Ok(file) => Ok(Some(Self { file, path, depth: self.depth + 1 })),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(e) => Err(Error::io("open the guest's", &self.shown_at(name))(e)),
        }
    }

    /// The metadata of an entry and what overlayfs says about it. The metadata are `None` if no
    /// image can hold them.
    pub fn metadata(&self, name: &CStr, found: &Statx) -> Result<(Option<Stat>, Marks)> {
        let (mut kept, mut marks, mut fits) = (Xattrs::new(), Marks::default(), true);
        let mut saved = false;
        let path = self.path_of(name);
        for_each_xattr(&path, &self.proc_path(name), |name, value| {
            match name.strip_prefix(OVERLAY) {
                Some(b"opaque") => marks.opaque = value == b"y",
                Some(b"redirect") => marks.redirect = Some(value.to_vec()),
                Some(b"metacopy") => marks.metacopy = true,
                // What overlayfs keeps for itself: inode numbers, and whose the directory is.
                Some(b"origin" | b"impure" | b"nlink" | b"upper" | b"uuid") => {}
                // Of a metacopy that was being completed; otherwise it has its capabilities.
                Some(SAVED_CAPABILITY | SAVED_TIMES) => saved = true,
                _ => fits &= xattrs::add(&mut kept, &path, name, value).is_ok(),
            }
            Ok(())
        })?;
        fits &= !(saved && marks.metacopy);
        Ok((fits.then(|| to_stat(found, kept)), marks))
    }

    /// Opens a regular file for reading; `None` if it is no longer one.
    pub fn regular(&self, name: &CStr) -> Result<Option<(File, Statx)>> {
        // Of a fifo nobody may be waiting for a reader, and a lease must not be waited for.
        let flags = OFlags::NONBLOCK | OFlags::NOATIME;
        let file = match open(&self.file, name, flags) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::LOOP | Errno::WOULDBLOCK | Errno::NXIO) => return Ok(None),
            Err(e) => return Err(Error::io("open the guest's", &self.shown_at(name))(e)),
        };
        let found = stat(&file, c"").map_err(Error::io("look at", &self.shown_at(name)))?;
        Ok(is_regular(&found).then_some((file, found)))
    }

    /// A path that leads to an entry, whatever happens to the directory's own path.
    pub fn proc_path(&self, name: &CStr) -> PathBuf {
        let fd = self.file.as_raw_fd();
        let name = if name.is_empty() { b"." } else { name.to_bytes() };
        let path = [format!("/proc/self/fd/{fd}/").as_bytes(), name].concat();
        PathBuf::from(OsStr::from_bytes(&path))
    }

    /// The path of an entry in the guest.
    pub fn path_of(&self, name: &CStr) -> Vec<u8> {
        [self.path.as_slice(), b"/", name.to_bytes()].concat()
    }

    /// The same for a message.
    pub fn shown_at(&self, name: &CStr) -> PathBuf {
        PathBuf::from(OsStr::from_bytes(&self.path_of(name)))
    }
}

impl Entry {
    /// Its name.
    pub fn os_name(&self) -> &OsStr {
        OsStr::from_bytes(self.name.to_bytes())
    }

    /// Its type.
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(u32::from(self.found.stx_mode))
    }

    /// Whether it hides what is below.
    pub fn is_whiteout(&self) -> bool {
        self.kind() == FileType::CharacterDevice
            && (self.found.stx_rdev_major, self.found.stx_rdev_minor) == (0, 0)
    }
}

/// Whether it is a regular file.
pub fn is_regular(found: &Statx) -> bool {
    FileType::from_raw_mode(u32::from(found.stx_mode)) == FileType::RegularFile
}
