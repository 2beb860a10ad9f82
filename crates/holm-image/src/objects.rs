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

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use composefs::INLINE_CONTENT_MAX_V0;
use composefs::fsverity::{FsVerityHashValue, Sha256HashValue};
use composefs::tree::RegularFile;
use rustix::fs::{
    CWD, FlockOperation, RenameFlags, SeekFrom, flock, fstatvfs, renameat_with, seek,
};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::verity::Hasher;

/// The size of the buffer. A body that fits into it is not written if the store has it already.
pub(crate) const PIECE: usize = 1 << 20;
const BLOCK: usize = 4096;

/// What an import leaves free of the disk, for the guests that run on it: a twentieth, at most this
/// many bytes. What an archive unpacks to cannot be known before.
const RESERVE_SHARE: u64 = 20;
const RESERVE_MAX: u64 = 1 << 30;

/// An object store, and the bodies of a base that is being imported.
#[derive(Debug)]
pub struct Objects {
    store: PathBuf,
    staging: PathBuf,
    /// A shared lock, which keeps unused objects from being collected.
    lock: File,
    /// Every body of the base, by its path below the store.
    bodies: BTreeMap<String, Stored>,
    buffer: Vec<u8>,
    /// For reading what the store has.
    check: Vec<u8>,
}

/// A body. It is in the staging directory unless the store has it.
#[derive(Debug)]
struct Stored {
    size: u64,
    found: Found,
}

/// What the store has by the name of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    Body,
    /// Something else: the disk or a person has changed it.
    Damaged,
}

impl Objects {
    /// Opens the object store `store`. Makes the directory `staging` for new bodies.
    pub fn open(store: PathBuf, staging: PathBuf) -> Result<Self> {
        fs::create_dir(&staging).map_err(Error::io("create", &staging))?;
        let lock = Self::lock(&store)?;
        let (buffer, bodies) = (Vec::with_capacity(PIECE), BTreeMap::new());
        Ok(Self { store, staging, lock, bodies, buffer, check: vec![0; PIECE] })
    }

    /// Keeps the objects of a store from being collected until the file is closed.
    pub fn lock(store: &Path) -> Result<File> {
        let lock = File::open(store).map_err(Error::io("open", store))?;
        flock(&lock, FlockOperation::LockShared).map_err(Error::io("lock", store))?;
        Ok(lock)
    }

    /// Begins a body.
    pub(crate) fn body(&mut self) -> Body<'_> {
        self.buffer.clear();
        Body { objects: self, hasher: Hasher::new(), file: None, at: 0 }
    }

    /// The file with a body.
    pub(crate) fn path(&self, id: &Sha256HashValue) -> PathBuf {
        let name = id.to_object_pathname();
        let staged = self.staged(&name);
        if staged.exists() { staged } else { self.store.join(&name) }
    }

    /// The bytes of all bodies; equal ones count once.
    pub fn bytes(&self) -> u64 {
        self.bodies.values().map(|body| body.size).sum()
    }

    /// The bytes of the bodies that the store did not have.
    pub fn new_bytes(&self) -> u64 {
        self.bodies.values().filter(|b| b.found == Found::Nothing).map(|body| body.size).sum()
    }

    /// How many objects of the store were damaged, and are replaced by [`Objects::commit`].
    pub fn restored(&self) -> u64 {
        self.bodies.values().filter(|body| body.found == Found::Damaged).count() as u64
    }

    /// The path below the store and the length of every body, sorted.
    pub fn bodies(&self) -> impl Iterator<Item = (&str, u64)> {
        self.bodies.iter().map(|(path, body)| (path.as_str(), body.size))
    }

    /// Refuses to write `more` bytes if the disk then had less than the reserve.
    pub fn check_room(&self, more: u64) -> Result<()> {
        let disk = fstatvfs(&self.lock).map_err(Error::io("look at the disk of", &self.store))?;
        let reserve =
            (disk.f_blocks.saturating_mul(disk.f_frsize) / RESERVE_SHARE).min(RESERVE_MAX);
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        // Some filesystems do not say how large they are.
        if disk.f_blocks > 0 && free < reserve.saturating_add(more) {
            return Err(Error::NoRoom { path: self.store.clone(), reserve });
        }
        Ok(())
    }

    /// The path below the store and the length of every object that it has.
    pub(crate) fn stored(&self) -> Result<HashMap<String, u64>> {
        stored(&self.store)
    }

    /// Renames new bodies into the store. The caller has synced them to disk.
    pub fn commit(&self) -> Result<()> {
        for (name, body) in self.bodies.iter().filter(|(_, body)| body.found != Found::Body) {
            let dir = self.store.join(&name[..2]);
            match fs::create_dir(&dir) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::io("create", &dir)(e));
                }
                _ => {}
            }
            let from = self.staged(name);
            let to = self.store.join(name);
            let flags = match body.found {
                Found::Damaged => RenameFlags::empty(),
                _ => RenameFlags::NOREPLACE,
            };
            match renameat_with(CWD, &from, CWD, &to, flags) {
                // Another import has stored the same body.
                Ok(()) | Err(Errno::EXIST) => {}
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
        let found = self.look_up(&name, id, size)?;
        if found != Found::Body {
            self.check_room(self.buffer.len() as u64)?;
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
        self.bodies.insert(name, Stored { size, found });
        Ok(())
    }

    /// What the store has by the name of a body. All of it is read, because importing a source once
    /// more is what restores a damaged base. That is one read and one hash of what is shared, a
    /// tenth of what reading it from the source has just cost; a note of what was checked in this
    /// boot would not know what has happened to the file since.
    fn look_up(&mut self, name: &str, id: &Sha256HashValue, size: u64) -> Result<Found> {
        let path = self.store.join(name);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(e) => return Err(Error::io("open", &path)(e)),
        };
        let is_body = file.metadata().and_then(|found| {
            Ok(found.is_file()
                && found.len() == size
                && Sha256HashValue::from(digest(&file, size, &mut self.check)?) == *id)
        });
        match is_body {
            Ok(true) => Ok(Found::Body),
            Ok(false) => Ok(Found::Damaged),
            // What the disk, or the checksums of its filesystem, no longer yields.
            Err(e) if e.raw_os_error() == Some(Errno::IO.raw_os_error()) => Ok(Found::Damaged),
            Err(e) => Err(Error::io("read", &path)(e)),
        }
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

/// The path below the store and the length of everything that stands where an object does.
pub(crate) fn stored(store: &Path) -> Result<HashMap<String, u64>> {
    let mut stored = HashMap::new();
    let fail = || Error::io("read", store);
    for dir in fs::read_dir(store).map_err(fail())? {
        let dir = dir.map_err(fail())?;
        let prefix = dir.file_name().to_string_lossy().into_owned();
        if prefix.len() != 2 || prefix.starts_with('.') {
            continue;
        }
        for object in fs::read_dir(dir.path()).map_err(fail())? {
            let object = object.map_err(fail())?;
            let size = object.metadata().map_err(fail())?.len();
            stored.insert(format!("{prefix}/{}", object.file_name().to_string_lossy()), size);
        }
    }
    Ok(stored)
}

/// The digest of a file of `size` bytes.
pub(crate) fn digest(file: &File, size: u64, buffer: &mut [u8]) -> io::Result<[u8; 32]> {
    let mut hasher = Hasher::new();
    while hasher.len() < size {
        let data = match seek(file, SeekFrom::Data(hasher.len())) {
            // The rest is a hole.
            Err(Errno::NXIO) => size,
            data => data?.min(size),
        };
        hasher.zeros(data - hasher.len());
        let hole = if data < size { seek(file, SeekFrom::Hole(data))?.min(size) } else { size };
        while hasher.len() < hole {
            let want = usize::try_from(hole - hasher.len()).unwrap_or(PIECE).min(buffer.len());
            match file.read_at(&mut buffer[..want], hasher.len())? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => hasher.data(&buffer[..n]),
            }
        }
    }
    Ok(hasher.finish())
}

/// Stores a file's data and holes. Calls `progress` with the bytes of each piece.
pub(crate) fn copy_body(
    file: &File,
    path: &Path,
    objects: &mut Objects,
    progress: &mut dyn FnMut(u64),
) -> Result<RegularFile<Sha256HashValue>> {
    let mut buffer = vec![0; PIECE];
    let mut body = objects.body();
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
            let n = file.read_at(&mut buffer[..want], at).map_err(Error::io("read", path))?;
            if n == 0 {
                return body.end(); // it has been truncated
            }
            body.data(&buffer[..n])?;
            at += n as u64;
            progress(n as u64);
        }
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
        self.objects.check_room(self.objects.buffer.len() as u64)?;
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
