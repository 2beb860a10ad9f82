//! `guests/NAME/digests`: the digests of files in a private layer, as of the last unification.
//!
//! ```text
//! INODE CTIME.NANOSECONDS SIZE ab/cdef...
//! ```
//!
//! A line holds for the file with this inode number as long as its change time and its size are the
//! same: guest root can set neither. A line names a file that may become an object.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::Statx;

use crate::error::{Error, Result};

/// What is known about one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its change time: seconds and nanoseconds.
    pub changed: (i64, u32),
    /// Its length in bytes.
    pub size: u64,
    /// The path of its body below the object store.
    pub object: String,
}

/// The digests of a private layer's files, by inode number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digests(HashMap<u64, Known>);

impl Digests {
    /// Reads the file `path`; there are none if it does not exist. Lines that are none are left
    /// out: what is not known is computed again.
    pub fn read(path: &Path) -> Result<Self> {
        match fs::read_to_string(path) {
            Ok(text) => Ok(Self::parse(&text)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(e) => Err(Error::io("read", path)(e)),
        }
    }

    fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(parse_line).collect())
    }

    /// The text of the file, sorted.
    pub fn to_text(&self) -> String {
        let mut inodes: Vec<&u64> = self.0.keys().collect();
        inodes.sort();
        inodes.into_iter().fold(String::new(), |mut text, inode| {
            let Known { changed: (seconds, nanoseconds), size, object } = &self.0[inode];
            let _ = writeln!(text, "{inode} {seconds}.{nanoseconds:09} {size} {object}");
            text
        })
    }

    /// The object that a file has become, if it has not changed since.
    pub fn find(&self, file: &Statx) -> Option<&str> {
        let known = self.0.get(&file.stx_ino)?;
        let same = known.changed == changed(file) && known.size == file.stx_size;
        same.then_some(known.object.as_str())
    }

    /// Adds what is known about a file.
    pub fn insert(&mut self, file: &Statx, object: String) {
        let known = Known { changed: changed(file), size: file.stx_size, object };
        self.0.insert(file.stx_ino, known);
    }

    /// What is known about all files.
    pub fn iter(&self) -> impl Iterator<Item = &Known> {
        self.0.values()
    }
}

fn changed(file: &Statx) -> (i64, u32) {
    (file.stx_ctime.tv_sec, file.stx_ctime.tv_nsec)
}

fn parse_line(line: &str) -> Option<(u64, Known)> {
    let mut words = line.split(' ');
    let inode = words.next()?.parse().ok()?;
    let (seconds, nanoseconds) = words.next()?.split_once('.')?;
    let changed = (seconds.parse().ok()?, nanoseconds.parse().ok()?);
    let size = words.next()?.parse().ok()?;
    let object = words.next()?;
    let hex = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let (directory, file) = object.split_once('/')?;
    let is_object = directory.len() == 2 && file.len() == 62 && hex(directory) && hex(file);
    let whole = is_object && words.next().is_none();
    whole.then(|| (inode, Known { changed, size, object: object.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let object = format!("ab/{}", "0".repeat(62));
        let text = format!("7 1700000000.000000042 4711 {object}\n8 -1.5 65 {object}\n");
        let digests = Digests::parse(&text);
        assert_eq!(digests.iter().count(), 2);
        assert_eq!(digests.0[&7].changed, (1_700_000_000, 42));
        assert_eq!(Digests::parse(&digests.to_text()), digests);
    }

    #[test]
    fn what_is_no_line_is_left_out() {
        let object = format!("ab/{}", "0".repeat(62));
        for text in [
            "",
            "7 1.2 3",
            &format!("7 1.2 3 ../{}", "0".repeat(62)),
            &format!("7 1 3 {object}"),
            &format!("7 1.2 3 {object} more"),
            &format!("-7 1.2 3 {object}"),
        ] {
            assert_eq!(Digests::parse(text), Digests::default(), "{text}");
        }
    }
}
