//! The store, and the bodies of one import.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use composefs::fsverity::{
    EnableVerityError, FsVerityHashValue, Sha256HashValue, enable_verity_with_retry,
};
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, fstatvfs, renameat_with};
use rustix::io::Errno;

use super::digest::digest;
use crate::error::{Error, Result};
use crate::parallel;

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
    bodies: Mutex<BTreeMap<String, Stored>>,
    /// How many files were made for bodies.
    files: AtomicU64,
    /// Whether the source's extents may be shared, as far as is known.
    pub(super) clones: AtomicBool,
}

/// A body. It is in the staging directory unless the store has it.
#[derive(Debug)]
struct Stored {
    size: u64,
    found: Found,
}

/// What the store has by the name of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
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
        Ok(Self {
            store,
            staging,
            lock,
            bodies: Mutex::default(),
            files: AtomicU64::new(0),
            clones: AtomicBool::new(true),
        })
    }

    /// Keeps the objects of a store from being collected until the file is closed.
    pub fn lock(store: &Path) -> Result<File> {
        let lock = File::open(store).map_err(Error::io("open", store))?;
        flock(&lock, FlockOperation::LockShared).map_err(Error::io("lock", store))?;
        Ok(lock)
    }

    /// The file with a body.
    pub(crate) fn path(&self, id: &Sha256HashValue) -> PathBuf {
        let name = id.to_object_pathname();
        let staged = self.staged(&name);
        if staged.exists() { staged } else { self.store.join(&name) }
    }

    /// The bytes of all bodies; equal ones count once.
    pub fn bytes(&self) -> u64 {
        self.known().values().map(|body| body.size).sum()
    }

    /// The bytes of the bodies that the store did not have.
    pub fn new_bytes(&self) -> u64 {
        self.known().values().filter(|b| b.found == Found::Nothing).map(|body| body.size).sum()
    }

    /// How many objects of the store were damaged, and are replaced by [`Objects::commit`].
    pub fn restored(&self) -> u64 {
        self.known().values().filter(|body| body.found == Found::Damaged).count() as u64
    }

    /// The path below the store and the length of every body, sorted.
    pub fn bodies(&self) -> Vec<(String, u64)> {
        self.known().iter().map(|(path, body)| (path.clone(), body.size)).collect()
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
        let bodies = self.known();
        let new: Vec<(&String, Found)> = bodies
            .iter()
            .filter(|(_, body)| body.found != Found::Body)
            .map(|(name, body)| (name, body.found))
            .collect();
        self.protect(&new)?;
        for (name, found) in new {
            let dir = self.store.join(&name[..2]);
            match fs::create_dir(&dir) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::io("create", &dir)(e));
                }
                _ => {}
            }
            let from = self.staged(name);
            let to = self.store.join(name);
            let flags = match found {
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

    /// Enables fs-verity of new bodies, where the filesystem has it. It comes after the sync,
    /// because the kernel first waits until a file is on the disk, each by itself.
    fn protect(&self, new: &[(&String, Found)]) -> Result<()> {
        let supported = AtomicBool::new(true);
        let done = parallel::map(new, |(name, _), _| {
            if !supported.load(Ordering::Relaxed) {
                return Ok(());
            }
            let path = self.staged(name);
            let file = File::open(&path).map_err(Error::io("open", &path))?;
            match enable_verity_with_retry::<Sha256HashValue>(&file) {
                Ok(()) | Err(EnableVerityError::AlreadyEnabled) => Ok(()),
                Err(EnableVerityError::FilesystemNotSupported) => {
                    supported.store(false, Ordering::Relaxed);
                    Ok(())
                }
                Err(EnableVerityError::Io(e)) => Err(Error::io("enable fs-verity of", &path)(e)),
                Err(e) => Err(Error::io("enable fs-verity of", &path)(io::Error::other(e))),
            }
        });
        done.into_iter().collect()
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Stored>> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a body is one of the base already.
    pub(super) fn has(&self, name: &str) -> bool {
        self.known().contains_key(name)
    }

    pub(super) fn add(&self, name: String, size: u64, found: Found) {
        // Two threads may have stored equal bodies at once: the first has said what was found.
        self.known().entry(name).or_insert(Stored { size, found });
    }

    /// What the store has by the name of a body. All of it is read, because importing a source once
    /// more is what restores a damaged base. That is one read and one hash of what is shared, a
    /// tenth of what reading it from the source has just cost; a note of what was checked in this
    /// boot would not know what has happened to the file since.
    pub(super) fn look_up(
        &self,
        name: &str,
        id: &Sha256HashValue,
        size: u64,
        buffer: &mut [u8],
    ) -> Result<Found> {
        let path = self.store.join(name);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(e) => return Err(Error::io("open", &path)(e)),
        };
        let is_body = file.metadata().and_then(|found| {
            Ok(found.is_file()
                && found.len() == size
                && Sha256HashValue::from(digest(&file, size, buffer)?) == *id)
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
    pub(super) fn staged(&self, name: &str) -> PathBuf {
        self.staging.join(name.replace('/', ""))
    }

    /// A new file for a body.
    pub(super) fn temporary(&self) -> Result<Temporary> {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let path = self.staging.join(format!("body-{number}"));
        let file = File::create_new(&path).map_err(Error::io("create", &path))?;
        Ok(Temporary { path, file })
    }
}

/// A file for a body. It is removed when the body turns out not to be needed.
#[derive(Debug)]
pub(super) struct Temporary {
    pub(super) path: PathBuf,
    pub(super) file: File,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // It has its final name otherwise. What stays is removed with the staging directory.
        let _ = fs::remove_file(&self.path);
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
