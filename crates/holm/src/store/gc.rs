//! Collection: removing objects that nothing refers to any more.
//!
//! An import locks `objects` shared, from its first lookup of an object until its base exists. A
//! collection locks it exclusively, so it never removes an object that an import relies on. It does
//! not wait for that lock: the file `objects/.gc` marks a collection as due, and the next command
//! on bases tries again. While one runs, the file is `objects/.gc-running`.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::{directory, objects};
use crate::Failed;
use crate::failed::{is_link, is_there, unless_gone};
use crate::pool::Pool;
use crate::step;

/// Marks a collection as due.
pub(super) const DUE: &str = ".gc";
/// Marks a collection as running, or as killed while it ran.
const RUNNING: &str = ".gc-running";

/// The files that list objects that are in use: those of bases, and those of guests with an image
/// of their own or with files that are to become objects.
fn lists(pool: &Pool) -> Result<Vec<PathBuf>, Error> {
    let bases = pool.bases()?;
    let guests = pool.guests()?;
    let of_bases = bases.iter().map(|name| pool.base_dir(name).join("objects"));
    let of_guests = guests.iter().flat_map(|name| {
        let dir = pool.guest_dir(name);
        ["disk/objects", "prepared"].map(|list| dir.join(list))
    });
    Ok(of_bases.chain(of_guests).collect())
}

/// Requests a collection, because objects may have become unused.
pub fn request(pool: &Pool) -> Result<(), Error> {
    let dir = pool.objects_dir();
    let path = dir.join(DUE);
    File::create(&path).map_err(Error::io("write", &path))?;
    // Otherwise the host could lose power with objects left that nothing asks to collect.
    directory::sync(&dir)
}

/// What a collection has removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// How many objects.
    pub objects: u64,
    /// What they took on the disk, in bytes.
    pub bytes: u64,
}

/// Collects unused objects, if that was requested and no import is running.
pub(super) fn collect(pool: &Pool) -> Result<Collected, Error> {
    let dir = pool.objects_dir();
    let (due, running) = (dir.join(DUE), dir.join(RUNNING));
    // If `objects` is a link, other Holm roots may share it, and what they use is not known here.
    if !(is_there(&due)? || is_there(&running)?) || is_link(&dir)? {
        return Ok(Collected::default());
    }
    step::done("gc-due");
    let _lock = match directory::lock(&dir) {
        Ok(lock) => lock,
        Err(Error::Failed(Failed { source, .. })) if source.kind() == io::ErrorKind::WouldBlock => {
            return Ok(Collected::default());
        }
        Err(e) => return Err(e),
    };
    // Before the lists are read: a request that comes later may be for one that was read.
    let taken = unless_gone(fs::rename(&due, &running)).map_err(Error::io("rename", &due))?;
    if taken.is_none() && !is_there(&running)? {
        // Another command has collected in the meantime.
        return Ok(Collected::default());
    }
    let mut used = HashSet::new();
    // A guest that is renamed meanwhile would not be found by its old name, nor by its new one.
    let all = directory::lock_all(pool)?;
    for list in lists(pool)? {
        mark(&list, &mut used)?;
    }
    drop(all);
    step::done("gc-lists");
    let collected = sweep(&dir, &used)?;
    fs::remove_file(&running).map_err(Error::io("remove", &running))?;
    Ok(collected)
}

/// Adds the objects that the file `list` names to `used`. An unreadable list stops the collection,
/// because an object that is still in use must never be removed. A list that has been removed in
/// the meantime refers to nothing.
fn mark(list: &Path, used: &mut HashSet<String>) -> Result<(), Error> {
    match objects::read(list) {
        Ok(objects) => used.extend(objects.into_iter().map(|object| object.path)),
        Err(Error::Failed(Failed { source, .. })) if source.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Removes every object below `objects` whose path is not in `used`.
fn sweep(objects: &Path, used: &HashSet<String>) -> Result<Collected, Error> {
    let mut collected = Collected::default();
    for entry in fs::read_dir(objects).map_err(Error::io("read", objects))? {
        let dir = entry.map_err(Error::io("read", objects))?;
        let prefix = dir.file_name().to_string_lossy().into_owned();
        if prefix.len() != 2 || prefix.starts_with('.') {
            continue;
        }
        for entry in fs::read_dir(dir.path()).map_err(Error::io("read", &dir.path()))? {
            let entry = entry.map_err(Error::io("read", &dir.path()))?;
            let object = format!("{prefix}/{}", entry.file_name().to_string_lossy());
            if !used.contains(&object) {
                let found = entry.metadata().map_err(Error::io("look at", &entry.path()))?;
                fs::remove_file(entry.path()).map_err(Error::io("remove", &entry.path()))?;
                collected.objects += 1;
                collected.bytes += found.blocks() * 512;
            }
        }
    }
    Ok(collected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_list_names_stays() {
        let dir = std::env::temp_dir().join(format!("holm-gc-{}", std::process::id()));
        let object = |digit: &str| format!("{digit}{digit}/{}", digit.repeat(62));
        for digit in ["a", "b", "c"] {
            let path = dir.join(object(digit));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "body").unwrap();
        }
        let list = |name: &str, text: &str| {
            fs::write(dir.join(name), text).unwrap();
            dir.join(name)
        };
        let mut used = HashSet::new();
        mark(&list("one", &format!("{} 4\n", object("a"))), &mut used).unwrap();
        mark(&list("two", &format!("{} 4\n{} 4\n", object("a"), object("b"))), &mut used).unwrap();
        mark(&dir.join("gone"), &mut used).unwrap();
        assert!(mark(&list("damaged", "nonsense\n"), &mut used).is_err());
        sweep(&dir, &used).unwrap();
        let there = ["a", "b", "c"].map(|digit| dir.join(object(digit)).exists());
        let lists = ["one", "two", "damaged"].map(|name| dir.join(name).exists());
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!((there, lists), ([true, true, false], [true; 3]));
    }
}
