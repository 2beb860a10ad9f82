//! Maps of files with holes.

use std::io::Read;

/// The most pieces of data that a file may have. A larger map is taken for an attack on memory.
const PIECES_MAX: usize = 1 << 22;
/// A map before the data is padded to blocks of this size.
const BLOCK: usize = 512;

/// The map of a file with holes: where its data is.
#[derive(Debug, PartialEq, Eq)]
pub struct Map {
    /// The file's length.
    pub size: u64,
    /// Offset and length, ascending, within `size`.
    pub data: Vec<(u64, u64)>,
}

impl Map {
    /// Makes the map of a file of `size` bytes from pairs of offset and length; `None` if they
    /// overlap, are not in order, or exceed the size.
    pub fn new(size: u64, numbers: &[u64]) -> Option<Self> {
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
        // No file can be longer.
        (size <= i64::MAX.cast_unsigned()).then_some(Self { size, data })
    }
}

/// Reads the pairs of a map in GNU tar's format 1.0 from the start of an entry's data: decimal
/// numbers on lines, padded to 512 bytes.
pub fn read_numbers(entry: &mut impl Read) -> Option<Vec<u64>> {
    let mut block = [0; BLOCK];
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
                b'\n' => return std::str::from_utf8(&text).ok()?.parse().ok(),
                _ if text.len() > 20 => return None,
                byte => text.push(byte),
            }
        }
    };
    let pieces: u64 = line()?;
    let pieces = usize::try_from(pieces).ok().filter(|n| *n <= PIECES_MAX)?;
    (0..2 * pieces).map(|_| line()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps() {
        let good = Map::new(100, &[0, 10, 50, 50]).unwrap();
        assert_eq!(good, Map { size: 100, data: vec![(0, 10), (50, 50)] });
        assert!(Map::new(1 << 40, &[]).is_some());
        for (size, numbers) in [
            (100, &[0, 10, 5, 10][..]), // overlap
            (100, &[0, 101]),           // beyond the end
            (100, &[0]),                // no length
            (100, &[1, u64::MAX]),      // overflow
            (u64::MAX, &[]),
        ] {
            assert_eq!(Map::new(size, numbers), None, "{numbers:?}");
        }
    }

    #[test]
    fn map_before_the_data() {
        let mut text = b"2\n0\n10\n4096\n7\n".to_vec();
        text.resize(BLOCK, 0);
        text.extend_from_slice(b"data");
        let mut rest = text.as_slice();
        assert_eq!(read_numbers(&mut rest), Some(vec![0, 10, 4096, 7]));
        assert_eq!(rest, b"data");
        for bad in ["", "1\n0\n", "99999999999999\n", "x\n", "111111111111111111111111\n"] {
            let mut block = bad.as_bytes().to_vec();
            block.resize(BLOCK, 0);
            assert_eq!(read_numbers(&mut block.as_slice()), None, "{bad}");
        }
    }
}
