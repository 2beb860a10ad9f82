//! Reading and writing packets, in slices of fixed size.

/// A length as a big-endian field of 16 bits; `None` if it is too long.
pub fn length(bytes: usize) -> Option<[u8; 2]> {
    u16::try_from(bytes).ok().map(u16::to_be_bytes)
}

/// The sum of some bytes as numbers of 16 bits.
pub fn sum(bytes: &[u8]) -> u32 {
    let (pairs, odd) = bytes.as_chunks::<2>();
    pairs.iter().map(|pair| u32::from(u16::from_be_bytes(*pair))).sum::<u32>()
        + odd.first().map_or(0, |byte| u32::from(*byte) << 8)
}

/// The internet checksum (RFC 1071) of some bytes, on top of a sum.
pub fn checksum(start: u32, bytes: &[u8]) -> [u8; 2] {
    let mut total = start + sum(bytes);
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    let [_, _, high, low] = (!total).to_be_bytes();
    [high, low]
}

/// Reads from the beginning of a slice, which then is the rest.
pub struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    /// The next bytes.
    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }
}

/// Writes into a slice; what does not fit is only counted, and [`Writer::finish`] then gives
/// nothing.
pub struct Writer<'a> {
    pub bytes: &'a mut [u8],
    pub length: usize,
}

impl Writer<'_> {
    /// Adds bytes at the end.
    pub fn put(&mut self, part: &[u8]) {
        self.set(self.length, part);
        self.length += part.len();
    }

    /// Writes bytes at a position.
    pub fn set(&mut self, at: usize, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        if let Some(room) = self.bytes.get_mut(at..at + part.len()) {
            room.copy_from_slice(part);
        }
    }

    /// The length of what was written, if all of it fits.
    pub fn finish(&self) -> Option<usize> {
        (self.length <= self.bytes.len()).then_some(self.length)
    }
}
