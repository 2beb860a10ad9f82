//! Whether objects and images are what they were when they were written.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use composefs::erofs::reader::collect_objects;
use composefs::fsverity::{FsVerityHashValue, Sha256HashValue};
use rustix::fs::{Advice, OFlags, fadvise};

use crate::error::Result;
use crate::layer::has_identity;
use crate::objects::{digest, stored};
use crate::parallel;
use crate::verity::Hasher;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// How many objects there are.
    pub objects: u64,
    /// Their lengths together, in bytes.
    pub bytes: u64,
    /// Those that are not what their names say, with the reason.
    pub damaged: Vec<(String, String)>,
}

/// Reads the objects of a store, all or those of `only`, and compares them with their names. One
/// that cannot be read is damaged; that does not end the check. Calls `progress` with the bytes
/// that were read, all bytes, and an object.
pub fn objects(
    store: &Path,
    only: &[String],
    progress: &mut (dyn FnMut(u64, Option<u64>, &str) + Send),
) -> Result<Checked> {
    let mut all: Vec<(String, u64)> = stored(store)?.into_iter().collect();
    all.retain(|(path, _)| only.is_empty() || only.contains(path));
    all.sort();
    let bytes = all.iter().map(|(_, size)| size).sum();
    let progress = Mutex::new((0, progress));
    let reasons = parallel::map(&all, |(path, size), buffers| {
        let reason = of_object(&store.join(path), path, &mut buffers.read);
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.0 += size;
        let done = progress.0;
        (progress.1)(done, Some(bytes), path);
        reason
    });
    let objects = all.len() as u64;
    let damaged = all.into_iter().zip(reasons);
    let damaged = damaged.filter_map(|((path, _), reason)| Some((path, reason?))).collect();
    Ok(Checked { objects, bytes, damaged })
}

/// What is wrong with an object.
fn of_object(file: &Path, path: &str, buffer: &mut [u8]) -> Option<String> {
    let open = fs::OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(file);
    let found = open.and_then(|file| {
        let found = file.metadata()?;
        if !found.is_file() {
            return Ok(Some("it is no file".to_owned()));
        }
        // What is not in use is read from the disk, which is what is in doubt, not from memory.
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
        let id = Sha256HashValue::from(digest(&file, found.len(), buffer)?);
        let is_it = id.to_object_pathname() == path;
        Ok((!is_it).then(|| "its content has another digest".to_owned()))
    });
    match found {
        Ok(reason) => reason,
        // Removed meanwhile: whoever needs it, misses it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(format!("it cannot be read: {error}")),
    }
}

/// What is wrong with a metadata image: its bytes have `identity`, if that is known, and it refers
/// to no objects but those that the file `list` names, which may name more: a source that has a
/// file twice has brought both bodies.
pub fn image(image: &Path, list: &Path, identity: &Identity<'_>) -> Option<String> {
    let bytes = match fs::read(image) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Some("its image is missing".to_owned());
        }
        Err(error) => return Some(format!("its image cannot be read: {error}")),
    };
    let is_it = match identity {
        Identity::Digest("") => true,
        Identity::Digest(digest) => *digest == image_digest(&bytes),
        Identity::Own => has_identity(&bytes),
    };
    if !is_it {
        return Some("its image has been changed: its digest is another".to_owned());
    }
    let referred = match collect_objects::<Sha256HashValue>(&bytes) {
        Ok(ids) => ids.iter().map(FsVerityHashValue::to_object_pathname).collect::<BTreeSet<_>>(),
        Err(error) => return Some(format!("its image is damaged: {error}")),
    };
    let text = match fs::read_to_string(list) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Some("its list of objects is missing".to_owned());
        }
        // `holm` reads it too, and tells of that.
        Err(_) => return None,
    };
    let listed = text.lines().filter_map(|line| line.split(' ').next().map(str::to_owned));
    let listed = listed.collect::<BTreeSet<_>>();
    referred.difference(&listed).next().map(|missing| {
        format!("its image refers to object {missing}, which its list of objects does not have")
    })
}

/// How it is known whether an image has changed.
#[derive(Clone, Copy, Debug)]
pub enum Identity<'a> {
    /// By its digest; empty if that was not recorded.
    Digest(&'a str),
    /// Its UUID is made from its content.
    Own,
}

/// The digest of an image, as a base.toml has it: that of fs-verity.
pub fn image_digest(image: &[u8]) -> String {
    let mut hasher = Hasher::new();
    hasher.data(image);
    Sha256HashValue::from(hasher.finish()).to_hex()
}
