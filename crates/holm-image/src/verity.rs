//! The fs-verity digest (SHA-256, blocks of 4096 bytes, no salt), which names an object.
//!
//! composefs has a hasher too, but this one is fast for holes of any length: it hashes equal blocks
//! once on each level.

use openssl::sha::sha256;

const BLOCK: usize = 4096;
const HASH: usize = 32;
const ZEROS: [u8; BLOCK] = [0; BLOCK];

/// Computes a digest incrementally.
#[derive(Debug)]
pub struct Hasher {
    /// The last, unfinished block of data.
    partial: Vec<u8>,
    /// The last, unfinished block of hashes of each level of the tree; never empty.
    levels: Vec<Vec<u8>>,
    zero: [u8; HASH],
    len: u64,
}

impl Default for Hasher {
    fn default() -> Self {
        Self::new()
    }
}

impl Hasher {
    /// A hasher that has seen no data.
    pub fn new() -> Self {
        let zero = sha256(&ZEROS);
        Self { partial: Vec::with_capacity(BLOCK), levels: Vec::new(), zero, len: 0 }
    }

    /// The number of bytes so far.
    #[expect(clippy::len_without_is_empty, reason = "a length, not a collection")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Appends data.
    pub fn data(&mut self, mut data: &[u8]) {
        self.len += data.len() as u64;
        if !self.partial.is_empty() {
            let n = data.len().min(BLOCK - self.partial.len());
            self.partial.extend_from_slice(&data[..n]);
            data = &data[n..];
            self.end_block();
        }
        let (blocks, rest) = data.as_chunks::<BLOCK>();
        for block in blocks {
            self.push(0, sha256(block));
        }
        self.partial.extend_from_slice(rest);
    }

    /// Appends `count` zeros.
    pub fn zeros(&mut self, mut count: u64) {
        self.len += count;
        if !self.partial.is_empty() {
            let n = count.min((BLOCK - self.partial.len()) as u64);
            self.partial.resize(self.partial.len() + small(n), 0);
            count -= n;
            self.end_block();
        }
        self.push_many(0, self.zero, count / BLOCK as u64);
        // Either the last block is complete and has been pushed, or count is 0.
        self.partial.resize(self.partial.len() + small(count % BLOCK as u64), 0);
    }

    fn end_block(&mut self) {
        if self.partial.len() == BLOCK {
            let hash = sha256(&self.partial);
            self.partial.clear();
            self.push(0, hash);
        }
    }

    /// Adds a hash to a level. A full block is hashed into the level above only when the next hash
    /// arrives, because a level with a single block is the root.
    fn push(&mut self, level: usize, hash: [u8; HASH]) {
        if level == self.levels.len() {
            self.levels.push(Vec::with_capacity(BLOCK));
        }
        if self.levels[level].len() == BLOCK {
            let up = sha256(&self.levels[level]);
            self.levels[level].clear();
            self.push(level + 1, up);
        }
        self.levels[level].extend_from_slice(&hash);
    }

    /// Adds `count` equal hashes to a level. The blocks that they fill are equal too, so each of
    /// them adds the same hash to the level above.
    fn push_many(&mut self, level: usize, hash: [u8; HASH], mut count: u64) {
        let full = (BLOCK / HASH) as u64;
        while count > full && self.levels.get(level).is_none_or(|block| block.len() < BLOCK) {
            self.push(level, hash);
            count -= 1;
        }
        if count > full {
            let up = sha256(&self.levels[level]);
            self.push(level + 1, up);
            // The last block of a level stays, as in `push`.
            let blocks = (count - 1) / full;
            self.push_many(level + 1, sha256(&hash.repeat(BLOCK / HASH)), blocks);
            self.levels[level].clear();
            count -= blocks * full;
        }
        for _ in 0..count {
            self.push(level, hash);
        }
    }

    /// The digest.
    pub fn finish(mut self) -> [u8; HASH] {
        if !self.partial.is_empty() {
            self.partial.resize(BLOCK, 0);
            self.end_block();
        }
        let root = self.root();
        // struct fsverity_descriptor of the kernel.
        let mut descriptor = [0_u8; 256];
        descriptor[..3].copy_from_slice(&[1, 1, 12]);
        descriptor[8..16].copy_from_slice(&self.len.to_le_bytes());
        descriptor[16..16 + HASH].copy_from_slice(&root);
        sha256(&descriptor)
    }

    fn root(&mut self) -> [u8; HASH] {
        let mut level = 0;
        while level < self.levels.len() {
            let last = level + 1 == self.levels.len();
            if last && let Ok(root) = <[u8; HASH]>::try_from(self.levels[level].as_slice()) {
                return root;
            }
            self.levels[level].resize(BLOCK, 0);
            let up = sha256(&self.levels[level]);
            self.push(level + 1, up);
            level += 1;
        }
        [0; HASH]
    }
}

/// Converts a number that is not above the size of a block.
fn small(n: u64) -> usize {
    usize::try_from(n).unwrap_or(BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use composefs::fsverity::{FsVerityHashValue, Sha256HashValue, compute_verity};

    fn hex(hash: [u8; HASH]) -> String {
        use std::fmt::Write;
        hash.iter().fold(String::new(), |mut s, b| {
            let _ = write!(s, "{b:02x}");
            s
        })
    }

    fn expected(data: &[u8]) -> String {
        compute_verity::<Sha256HashValue>(data).to_hex()
    }

    #[test]
    fn same_as_composefs() {
        let sizes =
            [1, 65, 4095, 4096, 4097, 8192, 128 * 4096, 128 * 4096 + 1, 129 * 4096, 3_000_001];
        for size in sizes {
            let data: Vec<u8> =
                (0..size).map(|i: usize| (i * 7 + i / 4096).to_le_bytes()[0]).collect();
            for step in [1000, 4096, 65536] {
                let mut hasher = Hasher::new();
                data.chunks(step).for_each(|c| hasher.data(c));
                assert_eq!(hasher.len(), size as u64);
                assert_eq!(hex(hasher.finish()), expected(&data), "{size} in steps of {step}");
            }
        }
    }

    #[test]
    fn holes_are_zeros() {
        for (before, hole, after) in
            [(0, 4096, 0), (1, 1, 1), (100, 3996, 5), (4096, 10_000, 1), (5000, 600_000, 4096)]
        {
            let mut hasher = Hasher::new();
            hasher.data(&vec![1; before]);
            hasher.zeros(hole as u64);
            hasher.data(&vec![2; after]);
            let data = [vec![1; before], vec![0; hole], vec![2; after]].concat();
            assert_eq!(hex(hasher.finish()), expected(&data), "{before} {hole} {after}");
        }
    }

    #[test]
    fn many_blocks_at_once_are_as_one_by_one() {
        // Around whole blocks of the second and third level, which are 128 and 16384 of the first.
        for before in [0, 1, 127, 128, 129, 16_384] {
            for count in [1, 128, 129, 256, 257, 16_383, 16_384, 16_385, 16_512, 40_000] {
                let (mut one, mut many) = (Hasher::new(), Hasher::new());
                for hasher in [&mut one, &mut many] {
                    (0..before).for_each(|n: usize| hasher.push(0, sha256(&n.to_le_bytes())));
                }
                (0..count).for_each(|_| one.push(0, [7; HASH]));
                many.push_many(0, [7; HASH], count);
                assert_eq!(one.levels, many.levels, "{before} {count}");
            }
        }
    }

    #[test]
    fn the_longest_file_takes_no_time() {
        let mut hasher = Hasher::new();
        hasher.zeros(i64::MAX.cast_unsigned());
        assert_eq!(hasher.len(), i64::MAX.cast_unsigned());
        assert_ne!(hex(hasher.finish()), expected(b""));
    }
}
