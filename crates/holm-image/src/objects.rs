//! Writing file bodies into the object store.
//!
//! ```text
//! STORE/ab/cdef...     an object
//! STAGING/body         the body that is being written
//! STAGING/abcdef...    a complete body that the store does not have yet
//! ```
//!
//! New bodies are collected in the staging directory, and renamed into the store when all of them
//! are on disk. So the objects in the store are always complete, even after a power failure, and a
//! killed import leaves none behind.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;

use composefs::INLINE_CONTENT_MAX_V0;
use composefs::fsverity::{FsVerityHashValue, Sha256HashValue};
use composefs::tree::RegularFile;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};

use crate::error::{Error, Result};
use crate::verity::Hasher;

/// The size of the buffer. A body that fits into it is not written if the store has it already.
pub(crate) const PIECE: usize = 1 << 20;
const BLOCK: usize = 4096;

/// An object store, and the bodies of a base that is being imported.
#[derive(Debug)]
pub struct Objects {
    store: PathBuf,
    staging: PathBuf,
    /// A shared lock, which keeps unused objects from being collected.
    _lock: File,
    /// Every body of the base, by its path below the store.
    bodies: BTreeMap<String, Stored>,
    buffer: Vec<u8>,
}

/// A body. It is in the staging directory if it is new, otherwise in the store.
#[derive(Debug)]
struct Stored {
    size: u64,
    is_new: bool,
}

impl Objects {
    /// Opens the object store `store`. Makes the directory `staging` for new bodies.
    pub fn open(store: PathBuf, staging: PathBuf) -> Result<Self> {
        fs::create_dir(&staging).map_err(Error::io("create", &staging))?;
        let lock = File::open(&store).map_err(Error::io("open", &store))?;
        flock(&lock, FlockOperation::LockShared).map_err(Error::io("lock", &store))?;
        let buffer = Vec::with_capacity(PIECE);
        Ok(Self { store, staging, _lock: lock, bodies: BTreeMap::new(), buffer })
    }

    /// Begins a body.
    pub(crate) fn body(&mut self) -> Body<'_> {
        self.buffer.clear();
        Body { objects: self, hasher: Hasher::new(), file: None, at: 0 }
    }

    /// The file with a body.
    pub(crate) fn path(&self, id: &Sha256HashValue) -> PathBuf {
        let name = id.to_object_pathname();
        let store = self.store.join(&name);
        if store.exists() { store } else { self.staged(&name) }
    }

    /// The bytes of all bodies; equal ones count once.
    pub fn bytes(&self) -> u64 {
        self.bodies.values().map(|body| body.size).sum()
    }

    /// The bytes of the bodies that the store did not have.
    pub fn new_bytes(&self) -> u64 {
        self.bodies.values().filter(|body| body.is_new).map(|body| body.size).sum()
    }

    /// The path below the store and the length of every body, sorted.
    pub fn bodies(&self) -> impl Iterator<Item = (&str, u64)> {
        self.bodies.iter().map(|(path, body)| (path.as_str(), body.size))
    }

    /// Renames new bodies into the store. The caller has synced them to disk.
    pub fn commit(&self) -> Result<()> {
        for (name, _) in self.bodies.iter().filter(|(_, body)| body.is_new) {
            let dir = self.store.join(&name[..2]);
            match fs::create_dir(&dir) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::io("create", &dir)(e));
                }
                _ => {}
            }
            let from = self.staged(name);
            let to = self.store.join(name);
            match renameat_with(CWD, &from, CWD, &to, RenameFlags::NOREPLACE) {
                // Another import has stored the same body.
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(e) => return Err(Error::io("create", &to)(e)),
            }
        }
        Ok(())
    }

    fn keep(&mut self, id: &Sha256HashValue, size: u64, body: Option<File>) -> Result<()> {
        let name = id.to_object_pathname();
        if self.bodies.contains_key(&name) {
            return Ok(());
        }
        let is_new = !self.store.join(&name).exists();
        if is_new {
            let path = self.temporary();
            let file = match body {
                Some(file) => file,
                None => File::create(&path).map_err(Error::io("create", &path))?,
            };
            let at = size - self.buffer.len() as u64;
            write_sparse(&file, &self.buffer, at).map_err(Error::io("write", &path))?;
            file.set_len(size).map_err(Error::io("write", &path))?;
            // The file's own mode is in the metadata image.
            file.set_permissions(Permissions::from_mode(0o444))
                .map_err(Error::io("write", &path))?;
            let to = self.staged(&name);
            fs::rename(&path, &to).map_err(Error::io("create", &to))?;
        }
        self.bodies.insert(name, Stored { size, is_new });
        Ok(())
    }

    /// The file of a new body before [`Objects::commit`].
    fn staged(&self, name: &str) -> PathBuf {
        self.staging.join(name.replace('/', ""))
    }

    /// The file of a body that is being written.
    fn temporary(&self) -> PathBuf {
        self.staging.join("body")
    }
}

/// A body that is being written.
#[derive(Debug)]
pub(crate) struct Body<'a> {
    objects: &'a mut Objects,
    hasher: Hasher,
    file: Option<File>,
    /// The offset of the buffer in the file.
    at: u64,
}

impl Body<'_> {
    /// Appends data.
    pub(crate) fn data(&mut self, data: &[u8]) -> Result<()> {
        self.hasher.data(data);
        if self.objects.buffer.len() + data.len() > PIECE {
            self.flush()?;
        }
        self.objects.buffer.extend_from_slice(data);
        Ok(())
    }

    /// Appends `count` zeros, which take no space on disk.
    pub(crate) fn hole(&mut self, count: u64) -> Result<()> {
        if count < PIECE as u64 {
            let zeros = [0; BLOCK];
            let mut left = usize::try_from(count).unwrap_or(0);
            while left > 0 {
                let n = left.min(BLOCK);
                self.data(&zeros[..n])?;
                left -= n;
            }
            return Ok(());
        }
        self.flush()?;
        self.hasher.zeros(count);
        self.at += count;
        Ok(())
    }

    /// Completes the body, and returns the image's reference to it.
    pub(crate) fn end(mut self) -> Result<RegularFile<Sha256HashValue>> {
        let size = self.hasher.len();
        if size <= INLINE_CONTENT_MAX_V0 as u64 {
            return Ok(RegularFile::Inline(self.objects.buffer.as_slice().into()));
        }
        if self.file.is_some() {
            self.flush()?;
        }
        let id = Sha256HashValue::from(self.hasher.finish());
        self.objects.keep(&id, size, self.file)?;
        Ok(RegularFile::External(id, size))
    }

    /// Writes the buffer to the file.
    fn flush(&mut self) -> Result<()> {
        let path = self.objects.temporary();
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::create(&path).map_err(Error::io("create", &path))?),
        };
        let buffer = &mut self.objects.buffer;
        write_sparse(file, buffer, self.at).map_err(Error::io("write", &path))?;
        self.at += buffer.len() as u64;
        buffer.clear();
        Ok(())
    }
}

/// Writes `data` at `at`. Blocks of zeros become holes.
fn write_sparse(file: &File, data: &[u8], at: u64) -> io::Result<()> {
    let into_block = usize::try_from(at % BLOCK as u64).unwrap_or(0);
    let first = data.len().min((BLOCK - into_block) % BLOCK);
    let (head, blocks) = data.split_at(first);
    file.write_all_at(head, at)?;
    let mut at = at + first as u64;
    let is_hole = |from: usize| {
        let block = &blocks[from..blocks.len().min(from + BLOCK)];
        block == &[0; BLOCK][..block.len()]
    };
    let mut from = 0;
    while from < blocks.len() {
        let hole = is_hole(from);
        let mut to = from + BLOCK;
        while to < blocks.len() && is_hole(to) == hole {
            to += BLOCK;
        }
        let to = to.min(blocks.len());
        if !hole {
            file.write_all_at(&blocks[from..to], at)?;
        }
        at += (to - from) as u64;
        from = to;
    }
    Ok(())
}
