//! The header of an entry: a block of 512 bytes.

use std::io;

/// Headers and data are in blocks of this size.
pub const BLOCK: usize = 512;
/// Where the sparse map is: 4 segments in an old GNU header, 21 in each extension block.
const MAP: std::ops::Range<usize> = 386..482;
const MORE_MAP: std::ops::Range<usize> = 0..504;

/// A header with a valid checksum. Fields are parsed on demand, because most have no meaning in a
/// pax or GNU long-name header, which describes the entry after it.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a>(&'a [u8; BLOCK]);

impl<'a> Header<'a> {
    /// Checks the checksum of the header in `block`.
    pub fn parse(block: &'a [u8; BLOCK]) -> io::Result<Self> {
        if is_header(block) {
            Ok(Self(block))
        } else {
            Err(damaged("a header is damaged: its checksum is wrong"))
        }
    }

    /// The type: `0` a file, `1` a hard link, and so on.
    pub fn kind(self) -> u8 {
        self.0[156]
    }

    /// The length of the data after it.
    pub fn size(self) -> io::Result<u64> {
        number(&self.0[124..136])
    }

    /// The permissions.
    pub fn mode(self) -> io::Result<u32> {
        Ok(u32::try_from(number(&self.0[100..108])? & 0o7777).unwrap_or(0))
    }

    /// The owner.
    pub fn uid(self) -> io::Result<u64> {
        number(&self.0[108..116])
    }

    /// The owner's group.
    pub fn gid(self) -> io::Result<u64> {
        number(&self.0[116..124])
    }

    /// The time of the last change, in seconds.
    pub fn mtime(self) -> io::Result<i64> {
        signed(&self.0[136..148])
    }

    /// The name, with its prefix if the header is ustar's: GNU tar has other fields there.
    pub fn path(self) -> Vec<u8> {
        let name = text(&self.0[..100]);
        if &self.0[257..263] != b"ustar\0" || self.0[345] == 0 {
            return name;
        }
        [text(&self.0[345..500]).as_slice(), b"/", &name].concat()
    }

    /// The target of a link.
    pub fn link(self) -> Vec<u8> {
        text(&self.0[157..257])
    }

    /// The length of a file with holes, in GNU tar's old format.
    pub fn sparse_size(self) -> io::Result<u64> {
        number(&self.0[483..495])
    }

    /// Adds the pieces of data of such a file to `numbers`. Returns whether another block follows.
    pub fn sparse_pieces(self, numbers: &mut Vec<u64>) -> io::Result<bool> {
        take_pieces(&self.0[MAP], numbers)?;
        Ok(self.0[482] != 0)
    }
}

/// Adds the pieces of data of a block that continues the map of a header to `numbers`. Returns
/// whether another block follows.
pub fn more_sparse_pieces(block: &[u8; BLOCK], numbers: &mut Vec<u64>) -> io::Result<bool> {
    take_pieces(&block[MORE_MAP], numbers)?;
    Ok(block[504] != 0)
}

fn take_pieces(fields: &[u8], numbers: &mut Vec<u64>) -> io::Result<()> {
    for piece in fields.chunks_exact(24).take_while(|piece| piece[0] != 0) {
        numbers.push(number(&piece[..12])?);
        numbers.push(number(&piece[12..])?);
    }
    Ok(())
}

/// Whether the checksum is valid. Some old programs computed it with signed bytes.
pub fn is_header(block: &[u8; BLOCK]) -> bool {
    let Ok(stored) = number(&block[148..156]) else { return false };
    let bytes = || block[..148].iter().chain(&block[156..]);
    let spaces = 8 * u64::from(b' ');
    let plain: u64 = bytes().map(|b| u64::from(*b)).sum();
    let signed: i64 = bytes().map(|b| i64::from(b.cast_signed())).sum();
    stored == plain + spaces || i64::try_from(stored) == Ok(signed + spaces.cast_signed())
}

/// The bytes up to the first NUL.
pub(super) fn text(field: &[u8]) -> Vec<u8> {
    field.split(|b| *b == 0).next().unwrap_or_default().to_vec()
}

/// A number in octal, or in GNU base-256 if the first bit is set.
fn number(field: &[u8]) -> io::Result<u64> {
    u64::try_from(signed(field)?).map_err(|_| damaged("a header is damaged: a negative number"))
}

fn signed(field: &[u8]) -> io::Result<i64> {
    let invalid = || damaged("a header is damaged: a field is not a number");
    if field[0] & 0x80 != 0 {
        // Two's complement of the whole field except the first bit.
        let negative = field[0] & 0x40 != 0;
        let first = if negative { field[0] } else { field[0] & 0x7f };
        let start = i128::from(first.cast_signed());
        let value = field[1..]
            .iter()
            .try_fold(start, |n, b| n.checked_mul(256).map(|n| n + i128::from(*b)));
        return value.and_then(|n| i64::try_from(n).ok()).ok_or_else(invalid);
    }
    let digits = field.iter().skip_while(|b| **b == b' ').take_while(|b| !matches!(b, 0 | b' '));
    digits.copied().try_fold(0_i64, |n, digit| match digit {
        b'0'..=b'7' => n.checked_mul(8).map(|n| n + i64::from(digit - b'0')).ok_or_else(invalid),
        _ => Err(invalid()),
    })
}

pub(super) fn damaged(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
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
}
