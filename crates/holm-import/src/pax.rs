//! Extended headers (pax): nanoseconds, attributes, access control lists, and the three ways in which
//! GNU tar writes holes.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use crate::acl;
use crate::error::{Error, Result};
use crate::xattrs::{self, Xattrs};

/// No file of a base has more pieces; a map that claims so is an attack on memory.
const PIECES_MAX: usize = 1 << 22;

/// Records with access control lists as text, and the attributes that they become.
const LISTS: [(&str, &str); 2] = [
    ("SCHILY.acl.access", "system.posix_acl_access"),
    ("SCHILY.acl.default", "system.posix_acl_default"),
];

/// The extended header of one entry.
#[derive(Default)]
pub struct Pax {
    pub path: Option<Vec<u8>>,
    pub link: Option<Vec<u8>>,
    pub size: Option<u64>,
    pub uid: Option<u64>,
    pub gid: Option<u64>,
    /// Seconds and nanoseconds.
    pub mtime: Option<(i64, u32)>,
    records: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Where the data of a file with holes is.
#[derive(Debug, PartialEq, Eq)]
pub struct SparseMap {
    /// The file's length.
    pub size: u64,
    /// Offset and length, ascending, within `size`.
    pub data: Vec<(u64, u64)>,
}

impl Pax {
    /// What the records `text` say; the last of a key counts.
    pub fn parse(mut text: &[u8]) -> Option<Self> {
        let mut pax = Self::default();
        // The real name of a file with holes, whose `path` is a made-up one.
        let mut real = None;
        while !text.is_empty() {
            let (key, value, rest) = record(text)?;
            text = rest;
            match key {
                // An empty value takes back what a header for all entries said.
                b"path" => pax.path = Some(value.to_vec()).filter(|v| !v.is_empty()),
                b"linkpath" => pax.link = Some(value.to_vec()).filter(|v| !v.is_empty()),
                b"size" if !value.is_empty() => pax.size = Some(number(value)?),
                b"uid" if !value.is_empty() => pax.uid = Some(number(value)?),
                b"gid" if !value.is_empty() => pax.gid = Some(number(value)?),
                b"mtime" if !value.is_empty() => pax.mtime = Some(parse_time(value)?),
                b"GNU.sparse.name" => real = Some(value.to_vec()),
                _ if key.starts_with(b"GNU.sparse.") || key.starts_with(b"SCHILY.") => {
                    pax.records.push((key.to_vec(), value.to_vec()));
                }
                _ => {}
            }
        }
        pax.path = real.or(pax.path);
        Some(pax)
    }

    /// The attributes of the file `path`, its access control lists among them.
    pub fn xattrs(&self, path: &[u8]) -> Result<Xattrs> {
        let mut all = Xattrs::new();
        for (key, value) in &self.records {
            if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
                xattrs::take(&mut all, path, name, value)?;
            }
        }
        for (key, list) in LISTS {
            // The same with numbers instead of names, if the archive has that too.
            if all.contains_key(OsStr::new(list)) {
                continue;
            }
            let Some(value) = self.last(key) else { continue };
            let value = acl::encode(&String::from_utf8_lossy(value))
                .map_err(|reason| Error::refused(OsStr::from_bytes(path), reason))?;
            // A list that says no more than the mode is none; the kernel drops it too.
            if value.len() > acl::MINIMAL || list.ends_with("default") {
                xattrs::take(&mut all, path, list.as_bytes(), &value)?;
            }
        }
        Ok(all)
    }

    /// The last value of `key`.
    fn last(&self, key: &str) -> Option<&[u8]> {
        let found = self.records.iter().rev().find(|(k, _)| k == key.as_bytes());
        found.map(|(_, value)| value.as_slice())
    }

    /// Where the data of an entry with holes goes, if it has some; in one format the map stands
    /// before the data.
    pub fn sparse_map(&self, data: &mut impl Read) -> std::result::Result<Option<SparseMap>, ()> {
        let size = self.last("GNU.sparse.realsize").or_else(|| self.last("GNU.sparse.size"));
        let Some(size) = size else { return Ok(None) };
        let size = number(size).ok_or(())?;
        let numbers = match (self.last("GNU.sparse.major"), self.last("GNU.sparse.map")) {
            (Some(b"1"), _) => read_map(data).ok_or(())?,
            (_, Some(map)) => {
                map.split(|b| *b == b',').map(number).collect::<Option<_>>().ok_or(())?
            }
            _ => {
                let keys: [&[u8]; 2] = [b"GNU.sparse.offset", b"GNU.sparse.numbytes"];
                let pieces = self.records.iter().filter(|(key, _)| keys.contains(&key.as_slice()));
                pieces.map(|(_, value)| number(value)).collect::<Option<_>>().ok_or(())?
            }
        };
        sparse_map(size, &numbers).map(Some).ok_or(())
    }
}

/// Pairs of offset and length, checked.
pub fn sparse_map(size: u64, numbers: &[u64]) -> Option<SparseMap> {
    let (pairs, []) = numbers.as_chunks::<2>() else { return None };
    let mut at = 0;
    let mut data = Vec::with_capacity(pairs.len());
    for [offset, length] in pairs {
        let end = offset.checked_add(*length)?;
        if *offset < at || end > size {
            return None;
        }
        at = end;
        data.push((*offset, *length));
    }
    // No file of Linux is longer.
    (size <= i64::MAX.cast_unsigned()).then_some(SparseMap { size, data })
}

/// The map of version 1.0, which stands before the data, in decimal lines, padded to 512 bytes.
fn read_map(entry: &mut impl Read) -> Option<Vec<u64>> {
    let mut block = [0; 512];
    let mut at = block.len();
    let mut line = || {
        let mut text = Vec::new();
        loop {
            if at == block.len() {
                entry.read_exact(&mut block).ok()?;
                at = 0;
            }
            let byte = block[at];
            at += 1;
            match byte {
                b'\n' => return number(&text),
                _ if text.len() > 20 => return None,
                byte => text.push(byte),
            }
        }
    };
    let pieces = usize::try_from(line()?).ok().filter(|n| *n <= PIECES_MAX)?;
    (0..2 * pieces).map(|_| line()).collect()
}

/// Key and value of the first record of `text`, which is `LENGTH KEY=VALUE` and a newline, and the
/// rest. Only the length tells where it ends: a value may hold newlines.
fn record(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = text.iter().position(|b| *b == b' ')?;
    let length = usize::try_from(number(&text[..space])?).ok()?;
    if length <= space || length > text.len() {
        return None;
    }
    let (record, rest) = text.split_at(length);
    let record = record[space + 1..].strip_suffix(b"\n")?;
    let equals = record.iter().position(|b| *b == b'=')?;
    Some((&record[..equals], &record[equals + 1..], rest))
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Seconds and nanoseconds of "-1.25", which is a quarter before the second before 1970.
fn parse_time(text: &[u8]) -> Option<(i64, u32)> {
    let text = std::str::from_utf8(text).ok()?;
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let nanoseconds: u32 = format!("{fraction:0<9.9}").parse().ok()?;
    let whole: i64 = seconds.parse().ok()?;
    if seconds.starts_with('-') && nanoseconds > 0 {
        return Some((whole.checked_sub(1)?, 1_000_000_000 - nanoseconds));
    }
    Some((whole, nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, want) in [
            ("0", Some((0, 0))),
            ("1700000000.123456789", Some((1_700_000_000, 123_456_789))),
            ("1.5", Some((1, 500_000_000))),
            ("1.0000000019", Some((1, 1))),
            ("-1.25", Some((-2, 750_000_000))),
            ("-0.5", Some((-1, 500_000_000))),
            ("-3", Some((-3, 0))),
            ("", None),
            ("1.x", None),
            ("1.-5", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(parse_time(text.as_bytes()), want, "{text}");
        }
    }

    #[test]
    fn records() {
        let text = b"19 path=two\nlines!\n14 uid=100000\n24 SCHILY.xattr.u=\0=\n\xff=\n15 mtime=1.000\n7 gid=\n";
        let pax = Pax::parse(text).unwrap();
        assert_eq!(pax.path.unwrap(), b"two\nlines!");
        assert_eq!((pax.uid, pax.gid, pax.mtime), (Some(100_000), None, Some((1, 0))));
        assert_eq!(pax.records, [(b"SCHILY.xattr.u".to_vec(), b"\0=\n\xff=".to_vec())]);
        for bad in
            ["x", "8 uid=1", "9 uid=12\n ", "1 \n", "0 =\n", "99 uid=1\n", "9 uid=xy\n", "7 uid1\n"]
        {
            assert!(Pax::parse(bad.as_bytes()).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn maps() {
        let good = sparse_map(100, &[0, 10, 50, 50]).unwrap();
        assert_eq!(good, SparseMap { size: 100, data: vec![(0, 10), (50, 50)] });
        assert!(sparse_map(1 << 40, &[]).is_some());
        for (size, numbers) in [
            (100, &[0, 10, 5, 10][..]), // overlap
            (100, &[0, 101]),           // beyond the end
            (100, &[0]),                // no length
            (100, &[1, u64::MAX]),      // overflow
            (u64::MAX, &[]),
        ] {
            assert_eq!(sparse_map(size, numbers), None, "{numbers:?}");
        }
    }

    #[test]
    fn map_before_the_data() {
        let mut text = b"2\n0\n10\n4096\n7\n".to_vec();
        text.resize(512, 0);
        text.extend_from_slice(b"data");
        let mut rest = text.as_slice();
        assert_eq!(read_map(&mut rest), Some(vec![0, 10, 4096, 7]));
        assert_eq!(rest, b"data");
        for bad in ["", "1\n0\n", "99999999999999\n", "x\n", "111111111111111111111111\n"] {
            let mut block = bad.as_bytes().to_vec();
            block.resize(512, 0);
            assert_eq!(read_map(&mut block.as_slice()), None, "{bad}");
        }
    }
}
