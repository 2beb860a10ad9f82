//! Reading tar: ustar, GNU and pax, with what they say of holes.
//!
//! The usual crates split extended headers at newlines, which values may hold (access control lists
//! do), and see no holes in pax archives.

use std::io::{self, Read};

use crate::pax::{Pax, SparseMap, sparse_map};

const BLOCK: usize = 512;
/// Attributes are 64 KiB at most, paths 4 KiB; a larger extension is an attack on memory.
const EXTENSION_MAX: u64 = 16 << 20;
/// A header for all later entries costs each of them its length, so it must be short.
const GLOBAL_MAX: u64 = 4096;
/// Pieces of data in a block that goes on with an old GNU header's map.
const PIECES: usize = 21;

/// What an archive says of one file.
pub struct Header {
    /// The type: `0` a file, `1` a hard link, and so on.
    pub kind: u8,
    pub path: Vec<u8>,
    pub link: Vec<u8>,
    pub mode: u32,
    pub uid: u64,
    pub gid: u64,
    /// Seconds and nanoseconds.
    pub mtime: (i64, u32),
    /// Where the data of a file with holes goes.
    pub sparse: Option<SparseMap>,
    pub pax: Pax,
}

/// An archive; reading gives the data of the entry whose header came last.
pub struct Reader<R> {
    input: R,
    /// Bytes of the current entry's data that were not read yet, and of the padding after it.
    left: u64,
    padding: u64,
    /// What a header for all later entries said.
    global: Vec<u8>,
}

impl<R: Read> Reader<R> {
    pub fn new(input: R) -> Self {
        Self { input, left: 0, padding: 0, global: Vec::new() }
    }

    /// The next entry's header, or none at the end of the archive.
    pub fn next(&mut self) -> io::Result<Option<Header>> {
        let (mut long_path, mut long_link, mut records) = (None, None, Vec::new());
        loop {
            let Some(block) = self.header_block()? else { return Ok(None) };
            self.begin(number(&block[124..136])?);
            match block[156] {
                b'L' => long_path = Some(self.string()?),
                b'K' => long_link = Some(self.string()?),
                b'x' => append(&mut records, &self.extension()?, EXTENSION_MAX)?,
                b'g' => {
                    let more = self.extension()?;
                    append(&mut self.global, &more, GLOBAL_MAX)?;
                }
                _ => {
                    let records = [self.global.as_slice(), &records].concat();
                    let pax = Pax::parse(&records)
                        .ok_or_else(|| broken("an extended header is damaged"))?;
                    return self.header(&block, pax, long_path, long_link).map(Some);
                }
            }
        }
    }

    /// What comes after the archive, to its end: the checksums of compressed data are there.
    pub fn drain(mut self) -> io::Result<()> {
        io::copy(&mut self.input, &mut io::sink()).map(drop)
    }

    fn header(
        &mut self,
        block: &[u8; BLOCK],
        pax: Pax,
        long_path: Option<Vec<u8>>,
        long_link: Option<Vec<u8>>,
    ) -> io::Result<Header> {
        let size = pax.size.map_or_else(|| number(&block[124..136]), Ok)?;
        // Links have no data, whatever they say, as GNU tar has it.
        self.begin(if block[156] == b'1' { 0 } else { size });
        let sparse = match block[156] {
            b'S' => Some(self.old_sparse_map(block)?),
            _ => pax.sparse_map(self).map_err(|()| broken("a list of holes is damaged"))?,
        };
        let path = pax.path.clone().or(long_path).unwrap_or_else(|| path(block));
        Ok(Header {
            kind: match block[156] {
                // The oldest have no type for folders but a slash at the end.
                0 | b'0' | b'7' | b'S' if path.ends_with(b"/") => b'5',
                0 | b'7' | b'S' => b'0',
                kind => kind,
            },
            path,
            link: pax.link.clone().or(long_link).unwrap_or_else(|| text(&block[157..257])),
            mode: u32::try_from(number(&block[100..108])? & 0o7777).unwrap_or(0),
            uid: pax.uid.map_or_else(|| number(&block[108..116]), Ok)?,
            gid: pax.gid.map_or_else(|| number(&block[116..124]), Ok)?,
            mtime: match pax.mtime {
                Some(mtime) => mtime,
                None => (signed(&block[136..148])?, 0),
            },
            sparse,
            pax,
        })
    }

    /// The next block that is a header; none at the mark of the end.
    fn header_block(&mut self) -> io::Result<Option<[u8; BLOCK]>> {
        let skip = self.left + self.padding;
        let skipped = io::copy(&mut (&mut self.input).take(skip), &mut io::sink())?;
        (self.left, self.padding) = (0, 0);
        let mut block = [0; BLOCK];
        if skipped < skip || self.input.read_exact(&mut block).is_err() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the archive is cut off"));
        }
        if block == [0; BLOCK] {
            return Ok(None);
        }
        if !is_header(&block) {
            return Err(broken("a header is damaged: its checksum is wrong"));
        }
        Ok(Some(block))
    }

    fn begin(&mut self, size: u64) {
        self.left = size;
        self.padding = size.next_multiple_of(BLOCK as u64) - size;
    }

    /// The data of an entry that says something of the next one.
    fn extension(&mut self) -> io::Result<Vec<u8>> {
        if self.left > EXTENSION_MAX {
            return Err(broken("an extended header is too long"));
        }
        let size = self.left;
        let mut data = Vec::new();
        self.read_to_end(&mut data)?;
        if (data.len() as u64) < size {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the archive is cut off"));
        }
        Ok(data)
    }

    fn string(&mut self) -> io::Result<Vec<u8>> {
        Ok(text(&self.extension()?))
    }

    /// The map of GNU tar's own format: four pieces in the header, more in blocks after it.
    fn old_sparse_map(&mut self, block: &[u8; BLOCK]) -> io::Result<SparseMap> {
        let damaged = || broken("a list of holes is damaged");
        let mut numbers = Vec::new();
        take_pieces(&block[386..482], &mut numbers)?;
        let mut more = block[482] != 0;
        while more {
            let mut block = [0; BLOCK];
            // Not part of the entry's size.
            self.input.read_exact(&mut block)?;
            take_pieces(&block[..PIECES * 24], &mut numbers)?;
            more = block[504] != 0;
            if numbers.len() as u64 > EXTENSION_MAX / 8 {
                return Err(damaged());
            }
        }
        sparse_map(number(&block[483..495])?, &numbers).ok_or_else(damaged)
    }
}

impl<R: Read> Read for Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = (&mut self.input).take(self.left).read(buffer)?;
        self.left -= n as u64;
        Ok(n)
    }
}

/// Whether the checksum is right, which some old programs computed with signed bytes.
pub fn is_header(block: &[u8]) -> bool {
    let Ok(stored) = number(&block[148..156]) else { return false };
    let bytes = || block[..148].iter().chain(&block[156..BLOCK]);
    let spaces = 8 * u64::from(b' ');
    let plain: u64 = bytes().map(|b| u64::from(*b)).sum();
    let signed: i64 = bytes().map(|b| i64::from(b.cast_signed())).sum();
    stored == plain + spaces || i64::try_from(stored) == Ok(signed + spaces.cast_signed())
}

fn append(records: &mut Vec<u8>, more: &[u8], most: u64) -> io::Result<()> {
    records.extend_from_slice(more);
    if records.len() as u64 > most {
        return Err(broken("the archive's extended headers are too long"));
    }
    Ok(())
}

fn take_pieces(fields: &[u8], numbers: &mut Vec<u64>) -> io::Result<()> {
    for piece in fields.chunks_exact(24).take_while(|piece| piece[0] != 0) {
        numbers.push(number(&piece[..12])?);
        numbers.push(number(&piece[12..])?);
    }
    Ok(())
}

/// The name in a header, with ustar's prefix; GNU tar keeps other things there.
fn path(block: &[u8; BLOCK]) -> Vec<u8> {
    let name = text(&block[..100]);
    if &block[257..263] != b"ustar\0" || block[345] == 0 {
        return name;
    }
    [text(&block[345..500]).as_slice(), b"/", &name].concat()
}

/// Bytes up to the first zero.
fn text(field: &[u8]) -> Vec<u8> {
    field.split(|b| *b == 0).next().unwrap_or_default().to_vec()
}

/// A number in octal, or in binary if the first bit says so.
fn number(field: &[u8]) -> io::Result<u64> {
    u64::try_from(signed(field)?).map_err(|_| broken("a header is damaged: a negative number"))
}

fn signed(field: &[u8]) -> io::Result<i64> {
    let wrong = || broken("a header is damaged: a field is no number");
    if field[0] & 0x80 != 0 {
        // Two's complement over the whole field but for the first bit.
        let negative = field[0] & 0x40 != 0;
        let first = if negative { field[0] } else { field[0] & 0x7f };
        let start = i128::from(first.cast_signed());
        let value = field[1..]
            .iter()
            .try_fold(start, |n, b| n.checked_mul(256).map(|n| n + i128::from(*b)));
        return value.and_then(|n| i64::try_from(n).ok()).ok_or_else(wrong);
    }
    let digits = field.iter().skip_while(|b| **b == b' ').take_while(|b| !matches!(b, 0 | b' '));
    digits.copied().try_fold(0_i64, |n, digit| match digit {
        b'0'..=b'7' => n.checked_mul(8).map(|n| n + i64::from(digit - b'0')).ok_or_else(wrong),
        _ => Err(wrong()),
    })
}

fn broken(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (field, want) in [
            (&b"0000644\0"[..], Some(0o644)),
            (b"   644 \0", Some(0o644)),
            (b"\0\0\0\0\0\0\0\0", Some(0)),
            (b"77777777777\0", Some(0o777_7777_7777)),
            (b"\x80\0\0\0\0\0\0\x02\0\0\0\0", Some(2 << 32)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe", Some(-2)),
            (b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None),
            (b"0000648\0", None),
            (b"-000644\0", None),
        ] {
            assert_eq!(signed(field).ok(), want, "{field:?}");
        }
        assert!(number(b"\xff\xff\xff\xff\xff\xff\xff\xff").is_err());
    }

    #[test]
    fn cut_off_at_any_block() {
        let mut header = [0_u8; BLOCK];
        header[0] = b'x';
        header[124..135].copy_from_slice(b"00000001000");
        header[156] = b'0';
        header[148..156].fill(b' ');
        let sum: u64 = header.iter().map(|b| u64::from(*b)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        let whole = [&header[..], &[7; BLOCK], &[0; BLOCK]].concat();
        let entries = |bytes: &[u8]| {
            let mut reader = Reader::new(bytes);
            let mut count = 0;
            while reader.next()?.is_some() {
                count += 1;
            }
            io::Result::Ok(count)
        };
        assert_eq!(entries(&whole).unwrap(), 1);
        for length in 0..whole.len() - 1 {
            assert!(entries(&whole[..length]).is_err(), "{length}");
        }
        let mut damaged = whole;
        damaged[5] = 1;
        assert!(entries(&damaged).unwrap_err().to_string().contains("checksum"));
    }
}
