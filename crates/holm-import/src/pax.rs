//! What the extended headers of an archive entry say beyond the `tar` crate's reading of them:
//! nanoseconds, attributes, access control lists, and the three ways GNU tar writes holes.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use tar::{Entry, EntryType};

use crate::acl;
use crate::error::{Error, Result};
use crate::xattrs::{self, Xattrs};

/// No file of a base has more pieces; a map that claims so is an attack on memory.
const PIECES_MAX: usize = 1 << 22;

/// The extended header of one entry.
#[derive(Default)]
pub struct Pax {
    /// The real name of a file with holes.
    pub path: Option<Vec<u8>>,
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
    /// Reads what stands before the entry.
    pub fn read(entry: &mut Entry<'_, impl Read>) -> Result<Self> {
        let path = entry.path_bytes().into_owned();
        let broken = || Error::refused(OsStr::from_bytes(&path), "its extended header is damaged");
        let mut pax = Self::default();
        let Some(records) = entry.pax_extensions().map_err(|_| broken())? else {
            return Ok(pax);
        };
        for record in records {
            let record = record.map_err(|_| broken())?;
            let (key, value) = (record.key_bytes(), record.value_bytes());
            match key {
                b"mtime" => pax.mtime = Some(parse_time(value).ok_or_else(broken)?),
                b"uid" => pax.uid = Some(number(value).ok_or_else(broken)?),
                b"gid" => pax.gid = Some(number(value).ok_or_else(broken)?),
                b"GNU.sparse.name" => pax.path = Some(value.to_vec()),
                _ if key.starts_with(b"GNU.sparse.") || key.starts_with(b"SCHILY.") => {
                    pax.records.push((key.to_vec(), value.to_vec()));
                }
                _ => {}
            }
        }
        Ok(pax)
    }

    /// The attributes of the file `path`, its access control lists among them.
    pub fn xattrs(&self, path: &[u8]) -> Result<Xattrs> {
        let mut all = Xattrs::new();
        for (key, value) in &self.records {
            let list = match key.as_slice() {
                b"SCHILY.acl.access" => "system.posix_acl_access",
                b"SCHILY.acl.default" => "system.posix_acl_default",
                key => {
                    if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
                        xattrs::take(&mut all, path, name, value)?;
                    }
                    continue;
                }
            };
            let text = String::from_utf8_lossy(value);
            let value = acl::encode(&text)
                .map_err(|reason| Error::refused(OsStr::from_bytes(path), reason))?;
            xattrs::take(&mut all, path, list.as_bytes(), &value)?;
        }
        Ok(all)
    }

    /// Where the data of an entry with holes goes, or none if it has no map of its own. (Holes in
    /// GNU tar's own format are known to the `tar` crate, which reads them as zeros.)
    pub fn sparse_map(
        &self,
        entry: &mut Entry<'_, impl Read>,
        path: &[u8],
    ) -> Result<Option<SparseMap>> {
        let get = |key: &str| {
            let found = self.records.iter().rev().find(|(k, _)| k == key.as_bytes());
            found.map(|(_, value)| value.as_slice())
        };
        if entry.header().entry_type() == EntryType::GNUSparse {
            return Ok(None);
        }
        let broken = || Error::refused(OsStr::from_bytes(path), "its list of holes is damaged");
        let size = get("GNU.sparse.realsize").or_else(|| get("GNU.sparse.size"));
        let Some(size) = size else { return Ok(None) };
        let size = number(size).ok_or_else(broken)?;
        let numbers = match (get("GNU.sparse.major"), get("GNU.sparse.map")) {
            (Some(b"1"), _) => read_map(entry).ok_or_else(broken)?,
            (_, Some(map)) => {
                map.split(|b| *b == b',').map(number).collect::<Option<_>>().ok_or_else(broken)?
            }
            _ => {
                let keys: [&[u8]; 2] = [b"GNU.sparse.offset", b"GNU.sparse.numbytes"];
                let pieces = self.records.iter().filter(|(key, _)| keys.contains(&key.as_slice()));
                pieces.map(|(_, value)| number(value)).collect::<Option<_>>().ok_or_else(broken)?
            }
        };
        sparse_map(size, &numbers).map(Some).ok_or_else(broken)
    }
}

/// Pairs of offset and length, checked.
fn sparse_map(size: u64, numbers: &[u64]) -> Option<SparseMap> {
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
