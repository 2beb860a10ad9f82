//! Removing objects that no base refers to.
//!
//! An import holds the objects folder's lock shared from its first look for an object until its
//! base is there; collection needs it exclusively, so it never sees a base half referenced. When
//! imports go on, collection is left to the last of them: the file `objects/.gc` says it is due.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fs::FlockOperation;

use super::stage::lock_dir;
use super::{Base, Error};
use crate::Failed;
use crate::pool::Pool;

/// One line of a base's list of objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Body {
    /// Its path below `objects`: `ab/cdef...`, 65 bytes.
    pub object: String,
    /// Its length in bytes.
    pub size: u64,
}

/// The list in `text`, or the number of the first line that is wrong.
pub fn parse_bodies(text: &str) -> Result<Vec<Body>, usize> {
    let body = |line: &str| {
        let (object, size) = line.split_once(' ')?;
        let hex = |s: &str| s.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let (dir, file) = object.split_once('/')?;
        let good = dir.len() == 2 && file.len() == 62 && hex(dir) && hex(file);
        good.then_some(Body { object: object.into(), size: size.parse().ok()? })
    };
    text.lines().enumerate().map(|(n, line)| body(line).ok_or(n + 1)).collect()
}

fn read_bodies(path: &Path) -> Result<Vec<Body>, Error> {
    let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
    parse_bodies(&text).map_err(|line| Error::Bodies { path: path.to_owned(), line })
}

/// Sets `own_bytes` of each of `bases`, which are all there are.
pub(super) fn own_bytes(pool: &Pool, bases: &mut [Base]) -> Result<(), Error> {
    let mut lists = Vec::with_capacity(bases.len());
    let mut users: HashMap<String, u32> = HashMap::new();
    for base in &*bases {
        let list = read_bodies(&pool.base_dir(&base.name).join("objects"))?;
        for body in &list {
            *users.entry(body.object.clone()).or_default() += 1;
        }
        lists.push(list);
    }
    for (base, list) in bases.iter_mut().zip(lists) {
        base.meta.own_bytes = list.iter().filter(|b| users[&b.object] == 1).map(|b| b.size).sum();
    }
    Ok(())
}

/// Notes that objects may have become unused.
pub(super) fn want(pool: &Pool) -> Result<(), Error> {
    let path = pool.objects_dir().join(".gc");
    File::create(&path).map(drop).map_err(Error::io("write", &path))
}

/// Removes unused objects if that is due and no import goes on.
pub(super) fn run(pool: &Pool) -> Result<(), Error> {
    let objects = pool.objects_dir();
    // Through a link a store may serve other roots too, and what they use is not known here.
    if !objects.join(".gc").exists() || objects.is_symlink() {
        return Ok(());
    }
    let _lock = match lock_dir(&objects, FlockOperation::NonBlockingLockExclusive) {
        Ok(lock) => lock,
        Err(Error::Failed(Failed { source, .. })) if source.kind() == io::ErrorKind::WouldBlock => {
            return Ok(());
        }
        Err(e) => return Err(e),
    };
    let mut used = HashSet::new();
    for name in pool.bases()? {
        // A list that cannot be read stops the collection: better an object too many.
        let list = match read_bodies(&pool.base_dir(&name).join("objects")) {
            Err(Error::Failed(Failed { source, .. }))
                if source.kind() == io::ErrorKind::NotFound =>
            {
                continue;
            }
            other => other?,
        };
        used.extend(list.into_iter().map(|body| body.object));
    }
    sweep(&objects, &used)?;
    let path = objects.join(".gc");
    fs::remove_file(&path).map_err(Error::io("remove", &path))
}

/// Removes every object below `objects` whose path is not in `used`.
fn sweep(objects: &Path, used: &HashSet<String>) -> Result<(), Error> {
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
                fs::remove_file(entry.path()).map_err(Error::io("remove", &entry.path()))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        let name = format!("ab/{}", "0".repeat(62));
        let good = format!("{name} 65\n{name} 18446744073709551615\n");
        let bodies = parse_bodies(&good).unwrap();
        assert_eq!(bodies[0], Body { object: name.clone(), size: 65 });
        assert_eq!(bodies[1].size, u64::MAX);
        assert_eq!(parse_bodies("").unwrap(), []);
        for (text, line) in [
            (format!("{name} 1\n\n"), 2),
            (format!("{name}\n"), 1),
            (format!("{name} x\n"), 1),
            (format!("{name}0 1\n"), 1),
            (format!("../{} 1\n", "0".repeat(62)), 1),
            (format!("ab/../{} 1\n", "0".repeat(59)), 1),
        ] {
            assert_eq!(parse_bodies(&text), Err(line), "{text}");
        }
    }
}
