//! Reading an archive, entry by entry.

use std::io::{self, Read};

use super::header::{BLOCK, Header, damaged, more_sparse_pieces, text};
use crate::pax::{self, Pax};
use crate::sparse;

/// The longest extended header. Attributes have at most 64 KiB, paths 4 KiB, so a larger one is
/// taken for an attack on memory.
const EXTENSION_MAX: u64 = 16 << 20;
/// The longest global headers. They are parsed again for each entry, so they must be short.
const GLOBAL_MAX: u64 = 4096;

/// One file in an archive.
#[derive(Debug)]
pub struct Entry {
    /// The type: `0` a file, `1` a hard link, and so on.
    pub kind: u8,
    /// Its name.
    pub path: Vec<u8>,
    /// The target of a link.
    pub link: Vec<u8>,
    /// The permissions.
    pub mode: u32,
    /// The owner.
    pub uid: u64,
    /// The owner's group.
    pub gid: u64,
    /// Seconds and nanoseconds.
    pub mtime: (i64, u32),
    /// The map of a file with holes.
    pub sparse: Option<sparse::Map>,
    /// Its attributes and access control lists.
    pub pax: Pax,
}

/// An archive. Reading from it yields the data of the current entry.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    /// The bytes of the current entry's data that have not been read yet, and of the padding after
    /// it.
    left: u64,
    padding: u64,
    /// The records of global headers, which apply to all later entries.
    global: Vec<u8>,
}

impl<R: Read> Reader<R> {
    /// Reads the archive in `input`, which must not be compressed.
    pub fn new(input: R) -> Self {
        Self { input, left: 0, padding: 0, global: Vec::new() }
    }

    /// The next entry; `None` at the end of the archive.
    pub fn next_entry(&mut self) -> io::Result<Option<Entry>> {
        let (mut long_path, mut long_link, mut records) = (None, None, Vec::new());
        loop {
            let Some(block) = self.block()? else { return Ok(None) };
            let header = Header::parse(&block)?;
            self.begin(header.size()?)?;
            match header.kind() {
                b'L' => long_path = Some(self.string()?),
                b'K' => long_link = Some(self.string()?),
                b'x' => append(&mut records, &self.extension()?, EXTENSION_MAX)?,
                b'g' => {
                    let more = self.extension()?;
                    append(&mut self.global, &more, GLOBAL_MAX)?;
                }
                _ => {
                    let records = [self.global.as_slice(), &records].concat();
                    let pax = pax::parse(&records)
                        .ok_or_else(|| damaged("an extended header is damaged"))?;
                    return self.entry(header, pax, long_path, long_link).map(Some);
                }
            }
        }
    }

    /// Reads the input to its end, where compressed data has its checksum.
    pub fn drain(mut self) -> io::Result<()> {
        io::copy(&mut self.input, &mut io::sink()).map(drop)
    }

    fn entry(
        &mut self,
        header: Header<'_>,
        pax: Pax,
        long_path: Option<Vec<u8>>,
        long_link: Option<Vec<u8>>,
    ) -> io::Result<Entry> {
        let size = pax.size.map_or_else(|| header.size(), Ok)?;
        // A hard link has no data, whatever its header says: as in GNU tar.
        self.begin(if header.kind() == b'1' { 0 } else { size })?;
        let sparse = if header.kind() == b'S' {
            Some(self.old_sparse_map(header)?)
        } else if pax.is_sparse() {
            Some(pax.sparse_map(self).ok_or_else(damaged_map)?)
        } else {
            None
        };
        let path = pax.path.clone().or(long_path).unwrap_or_else(|| header.path());
        Ok(Entry {
            kind: match header.kind() {
                // The oldest archives mark directories by a slash at the end.
                0 | b'0' | b'7' | b'S' if path.ends_with(b"/") => b'5',
                0 | b'7' | b'S' => b'0',
                kind => kind,
            },
            path,
            link: pax.link.clone().or(long_link).unwrap_or_else(|| header.link()),
            mode: header.mode()?,
            uid: pax.uid.map_or_else(|| header.uid(), Ok)?,
            gid: pax.gid.map_or_else(|| header.gid(), Ok)?,
            mtime: match pax.mtime {
                Some(mtime) => mtime,
                None => (header.mtime()?, 0),
            },
            sparse,
            pax,
        })
    }

    /// The block after the current entry's data; `None` if it marks the end of the archive.
    fn block(&mut self) -> io::Result<Option<[u8; BLOCK]>> {
        let skip = self.left + self.padding;
        let skipped = io::copy(&mut (&mut self.input).take(skip), &mut io::sink())?;
        (self.left, self.padding) = (0, 0);
        let mut block = [0; BLOCK];
        if skipped < skip || self.input.read_exact(&mut block).is_err() {
            return Err(cut_off());
        }
        Ok((block != [0; BLOCK]).then_some(block))
    }

    fn begin(&mut self, size: u64) -> io::Result<()> {
        let padded = size.checked_next_multiple_of(BLOCK as u64);
        self.left = size;
        self.padding = padded.ok_or_else(|| damaged("an entry is too long"))? - size;
        Ok(())
    }

    /// The data of an extended header.
    fn extension(&mut self) -> io::Result<Vec<u8>> {
        if self.left > EXTENSION_MAX {
            return Err(damaged("an extended header is too long"));
        }
        let size = self.left;
        let mut data = Vec::new();
        self.read_to_end(&mut data)?;
        if (data.len() as u64) < size {
            return Err(cut_off());
        }
        Ok(data)
    }

    fn string(&mut self) -> io::Result<Vec<u8>> {
        Ok(text(&self.extension()?))
    }

    /// The map in GNU tar's old format: four pieces in the header, more in blocks after it.
    fn old_sparse_map(&mut self, header: Header<'_>) -> io::Result<sparse::Map> {
        let mut numbers = Vec::new();
        let mut more = header.sparse_pieces(&mut numbers)?;
        while more {
            let mut block = [0; BLOCK];
            // Not part of the entry's size.
            self.input.read_exact(&mut block)?;
            more = more_sparse_pieces(&block, &mut numbers)?;
            if numbers.len() as u64 > EXTENSION_MAX / 8 {
                return Err(damaged_map());
            }
        }
        sparse::Map::new(header.sparse_size()?, &numbers).ok_or_else(damaged_map)
    }
}

impl<R: Read> Read for Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = (&mut self.input).take(self.left).read(buffer)?;
        self.left -= n as u64;
        Ok(n)
    }
}

fn append(records: &mut Vec<u8>, more: &[u8], most: u64) -> io::Result<()> {
    records.extend_from_slice(more);
    if records.len() as u64 > most {
        return Err(damaged("the archive's extended headers are too long"));
    }
    Ok(())
}

fn damaged_map() -> io::Error {
    damaged("a list of holes is damaged")
}

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the archive is cut off")
}

#[cfg(test)]
mod tests {
    use super::*;

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
            while reader.next_entry()?.is_some() {
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
