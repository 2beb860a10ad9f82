//! Extended headers (pax): nanoseconds, extended attributes, access control lists, and the three
//! ways in which GNU tar writes holes.

use std::ffi::OsStr;
use std::io::Read;

use crate::acl;
use crate::error::{Error, Result};
use crate::sparse;
use crate::xattrs::{self, Xattrs};

/// The keys of access control lists as text, and the attributes that they are converted to.
const LISTS: [(&str, &str); 2] = [
    ("SCHILY.acl.access", "system.posix_acl_access"),
    ("SCHILY.acl.default", "system.posix_acl_default"),
];

/// The extended header of one entry.
#[derive(Debug, Default)]
pub struct Pax {
    /// Its name; for a file with holes, the real one.
    pub path: Option<Vec<u8>>,
    /// The target of a link.
    pub link: Option<Vec<u8>>,
    /// The length of its data in the archive.
    pub size: Option<u64>,
    /// The owner.
    pub uid: Option<u64>,
    /// The owner's group.
    pub gid: Option<u64>,
    /// Seconds and nanoseconds.
    pub mtime: Option<(i64, u32)>,
    /// The records about attributes, access control lists and holes, in their order.
    records: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Parses the records in `text`; `None` if they are damaged. The last record of a key counts.
pub fn parse(mut text: &[u8]) -> Option<Pax> {
    let mut pax = Pax::default();
    // For a file with holes, GNU tar stores another name in `path`.
    let mut real = None;
    while !text.is_empty() {
        let (key, value, rest) = record(text)?;
        text = rest;
        match key {
            // An empty value revokes that of a global header.
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

impl Pax {
    /// The extended attributes of the file `path`, its access control lists among them.
    pub fn xattrs(&self, path: &[u8]) -> Result<Xattrs> {
        let mut all = Xattrs::new();
        for (key, value) in &self.records {
            if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
                xattrs::add(&mut all, path, name, value)?;
            }
        }
        for (key, list) in LISTS {
            // The archive has the list in binary form too, with ids instead of names.
            if all.contains_key(OsStr::new(list)) {
                continue;
            }
            let Some(value) = self.last(key) else { continue };
            let value = acl::encode(&String::from_utf8_lossy(value))
                .map_err(|reason| Error::refused(path, reason))?;
            // A list that is equivalent to the mode is dropped, as the kernel does.
            if value.len() > acl::MINIMAL || list.ends_with("default") {
                xattrs::add(&mut all, path, list.as_bytes(), &value)?;
            }
        }
        Ok(all)
    }

    /// The last value of `key`.
    fn last(&self, key: &str) -> Option<&[u8]> {
        let found = self.records.iter().rev().find(|(k, _)| k == key.as_bytes());
        found.map(|(_, value)| value.as_slice())
    }

    /// Whether the entry is a file with holes.
    pub fn is_sparse(&self) -> bool {
        self.sparse_size().is_some()
    }

    fn sparse_size(&self) -> Option<&[u8]> {
        self.last("GNU.sparse.realsize").or_else(|| self.last("GNU.sparse.size"))
    }

    /// The map of an entry with holes; `None` if it is damaged. In one of the formats it is at the
    /// start of the entry's data.
    pub fn sparse_map(&self, data: &mut impl Read) -> Option<sparse::Map> {
        let size = number(self.sparse_size()?)?;
        let numbers = match (self.last("GNU.sparse.major"), self.last("GNU.sparse.map")) {
            (Some(b"1"), _) => sparse::read_numbers(data)?,
            (_, Some(map)) => map.split(|b| *b == b',').map(number).collect::<Option<_>>()?,
            _ => {
                let keys: [&[u8]; 2] = [b"GNU.sparse.offset", b"GNU.sparse.numbytes"];
                let pieces = self.records.iter().filter(|(key, _)| keys.contains(&key.as_slice()));
                pieces.map(|(_, value)| number(value)).collect::<Option<_>>()?
            }
        };
        sparse::Map::new(size, &numbers)
    }
}

/// Splits `text` into key and value of its first record, `LENGTH KEY=VALUE` and a newline, and the
/// rest. Only the length determines where a record ends, because a value may contain newlines.
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

/// Seconds and nanoseconds of a decimal number such as "-1.25".
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
        let text = b"19 path=two\nlines!\n14 uid=100000\n24 SCHILY.xattr.u=\0=\n\xff=\n\
                     15 mtime=1.000\n7 gid=\n";
        let pax = parse(text).unwrap();
        assert_eq!(pax.path.unwrap(), b"two\nlines!");
        assert_eq!((pax.uid, pax.gid, pax.mtime), (Some(100_000), None, Some((1, 0))));
        assert_eq!(pax.records, [(b"SCHILY.xattr.u".to_vec(), b"\0=\n\xff=".to_vec())]);
        for bad in
            ["x", "8 uid=1", "9 uid=12\n ", "1 \n", "0 =\n", "99 uid=1\n", "9 uid=xy\n", "7 uid1\n"]
        {
            assert!(parse(bad.as_bytes()).is_none(), "{bad:?}");
        }
    }
}
