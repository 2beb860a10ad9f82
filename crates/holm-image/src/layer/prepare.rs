//! Finding what guests have in common with one another and with the object store.
//!
//! Nothing of a guest is changed, so guests may run. Only files are read whose length some other
//! file or object has too. What a digest is worth later, when the guest has stopped, its file's
//! change time tells: all dirty pages of the filesystem are written back first, so that a program
//! that has mapped a file cannot change it from then on without the kernel noting the time.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use composefs::INLINE_CONTENT_MAX_V0;
use composefs::fsverity::{FsVerityHashValue, Sha256HashValue};
use composefs::tree::RegularFile;
use glob::{MatchOptions, Pattern};
use rustix::fs::{FileType, Statx, syncfs};

use super::digests::Digests;
use super::hash::{Candidate, digests};
use super::upper::UpperDir;
use crate::error::{Error, Result};
use crate::objects::{Objects, copy_body};
use crate::parallel;

/// A change that comes later than this after another has another change time, whatever clock the
/// filesystem uses: a tick takes 10 ms at most.
const TICK: Duration = Duration::from_millis(100);

/// Which files may become objects.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Only files of at least so many bytes.
    pub min_size: u64,
    /// Only files that have not changed for so long.
    pub min_age: Duration,
    /// No files at these paths.
    pub exclude: Vec<Pattern>,
}

/// A guest.
#[derive(Debug)]
pub struct Guest {
    /// Its name, for messages.
    pub name: String,
    /// Its upper directory.
    pub upper: PathBuf,
    /// What is known about its files.
    pub known: Digests,
}

/// What was found in one guest.
#[derive(Debug, Default)]
pub struct Prepared {
    /// The digests of its files.
    pub digests: Digests,
    /// How many files can become objects.
    pub files: u64,
    /// What these take on the disk, in bytes.
    pub bytes: u64,
    /// How many files were left out because they have changed lately.
    pub recent: u64,
}

/// All that is known by the digest of a body.
struct Seen {
    /// How many files have it; an object counts as many.
    count: u32,
    /// Whether the store has it.
    stored: bool,
    /// A guest that has it, by its place in the list, and where.
    guest: usize,
    file: Option<Candidate>,
}

/// Computes the digests of files that others have too, and stores their bodies in the staging
/// directory of `objects` unless `dry_run`. Returns what was found in each guest.
pub fn prepare(
    guests: &[Guest],
    rules: &Rules,
    dry_run: bool,
    objects: &Objects,
    progress: &mut (dyn FnMut(u64, Option<u64>, &str) + Send),
) -> Result<Vec<Prepared>> {
    let now = SystemTime::now();
    if let Some(guest) = guests.first() {
        let file = File::open(&guest.upper).map_err(Error::io("open", &guest.upper))?;
        progress(0, None, "writing back");
        syncfs(file).map_err(Error::io("sync the filesystem of", &guest.upper))?;
    }
    let stored = objects.stored()?;
    let mut sizes: HashMap<u64, u8> = stored.values().map(|size| (*size, 2)).collect();
    let mut walk = Walk { rules, now, recent: 0 };
    for guest in guests {
        progress(0, None, &guest.name);
        walk.files(&guest.upper, &mut |file| {
            let count = sizes.entry(file.found.stx_size).or_default();
            *count = count.saturating_add(1);
        })?;
    }
    let mut seen: HashMap<String, Seen> = HashMap::new();
    let mut prepared = Vec::with_capacity(guests.len());
    let mut done = 0;
    for (number, guest) in guests.iter().enumerate() {
        walk.recent = 0;
        let mut files = Vec::new();
        walk.files(&guest.upper, &mut |file| {
            if sizes.get(&file.found.stx_size).is_some_and(|count| *count > 1) {
                files.push(file);
            }
        })?;
        let bytes = AtomicU64::new(done);
        progress(done, None, &guest.name);
        let found = known_or_hashed(guest, &files, &|more| {
            bytes.fetch_add(more, Ordering::Relaxed);
        })?;
        done = bytes.into_inner();
        let mut digests = Digests::default();
        for (file, object) in files.into_iter().zip(found) {
            let Some(object) = object else { continue };
            digests.insert(&file.found, object.clone());
            let known = stored.contains_key(&object);
            let seen = seen.entry(object).or_insert(Seen {
                count: if known { 2 } else { 0 },
                stored: known,
                guest: number,
                file: None,
            });
            seen.count += 1;
            if !seen.stored && seen.file.is_none() {
                seen.file = Some(file);
            }
        }
        prepared.push(Prepared { digests, recent: walk.recent, ..Prepared::default() });
    }
    drop(sizes);
    if !dry_run {
        store(guests, &mut seen, objects, progress)?;
    }
    for prepared in &mut prepared {
        for known in prepared.digests.iter() {
            if seen
                .get(&known.object)
                .is_some_and(|seen| seen.count > 1 && (seen.stored || dry_run))
            {
                prepared.files += 1;
                prepared.bytes += known.size;
            }
        }
    }
    Ok(prepared)
}

/// The object that each file would be: known from an earlier run, or computed.
fn known_or_hashed(
    guest: &Guest,
    files: &[Candidate],
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Option<String>>> {
    let upper = File::open(&guest.upper).map_err(Error::io("open", &guest.upper))?;
    let mut objects: Vec<Option<String>> =
        files.iter().map(|file| guest.known.find(&file.found).map(str::to_owned)).collect();
    let unknown: Vec<usize> = (0..files.len()).filter(|at| objects[*at].is_none()).collect();
    let wanted: Vec<&Candidate> = unknown.iter().map(|at| &files[*at]).collect();
    let computed = digests(&upper, &wanted, progress)?;
    for (at, digest) in unknown.into_iter().zip(computed) {
        objects[at] = digest.map(|digest| Sha256HashValue::from(digest).to_object_pathname());
    }
    Ok(objects)
}

/// Stores the bodies that several files have and the store does not.
fn store(
    guests: &[Guest],
    seen: &mut HashMap<String, Seen>,
    objects: &Objects,
    progress: &mut (dyn FnMut(u64, Option<u64>, &str) + Send),
) -> Result<()> {
    let wanted = seen.iter_mut().filter(|(_, seen)| !seen.stored && seen.count > 1);
    let wanted: Vec<(&String, &mut Seen)> = wanted.collect();
    let progress = Mutex::new((0, progress));
    let stored = parallel::map(&wanted, |(object, seen), buffers| {
        let Some(candidate) = &seen.file else { return Ok(false) };
        let path = Path::new(OsStr::from_bytes(&candidate.path));
        let upper = &guests[seen.guest].upper;
        let dir = File::open(upper).map_err(Error::io("open", upper))?;
        let Some(file) = candidate.open(&dir)? else { return Ok(false) };
        let body = copy_body(&file, path, objects, buffers, &|_| {})?;
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.0 += candidate.found.stx_size;
        let done = progress.0;
        (progress.1)(done, None, &path.to_string_lossy());
        // If it has changed meanwhile, its body is stored by another name, and nothing uses it.
        Ok(matches!(body, RegularFile::External(id, _) if id.to_object_pathname() == **object))
    });
    for ((_, seen), stored) in wanted.into_iter().zip(stored) {
        seen.stored = stored?;
    }
    Ok(())
}

/// A look at the files that may become objects.
struct Walk<'a> {
    rules: &'a Rules,
    now: SystemTime,
    recent: u64,
}

impl Walk<'_> {
    fn files(&mut self, upper: &Path, each: &mut dyn FnMut(Candidate)) -> Result<()> {
        self.directory(&UpperDir::root(upper)?, each)
    }

    fn directory(&mut self, dir: &UpperDir, each: &mut dyn FnMut(Candidate)) -> Result<()> {
        for entry in dir.entries()? {
            match entry.kind() {
                FileType::Directory => {
                    if let Some(dir) = dir.directory(&entry.name)? {
                        self.directory(&dir, each)?;
                    }
                }
                FileType::RegularFile if self.may(dir, &entry.name, &entry.found) => {
                    let path = dir.path_of(&entry.name).split_off(1);
                    each(Candidate { path, found: entry.found });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn may(&mut self, dir: &UpperDir, name: &std::ffi::CStr, found: &Statx) -> bool {
        let size = found.stx_size;
        // A metacopy has no blocks of its own, as have files of holes, which cost nothing.
        if found.stx_nlink != 1
            || size <= INLINE_CONTENT_MAX_V0 as u64
            || size < self.rules.min_size
            || found.stx_blocks == 0
        {
            return false;
        }
        if !self.is_old(found) {
            self.recent += 1;
            return false;
        }
        if self.rules.exclude.is_empty() {
            return true;
        }
        let path = dir.path_of(name);
        let options = MatchOptions { require_literal_separator: false, ..MatchOptions::new() };
        let path = String::from_utf8_lossy(&path);
        !self.rules.exclude.iter().any(|pattern| pattern.matches_with(&path, options))
    }

    fn is_old(&self, found: &Statx) -> bool {
        let changed = &found.stx_ctime;
        let since = u64::try_from(changed.tv_sec).unwrap_or(0);
        let changed = SystemTime::UNIX_EPOCH + Duration::new(since, changed.tv_nsec);
        let age = self.now.duration_since(changed).unwrap_or_default();
        age >= self.rules.min_age.max(TICK)
    }
}
