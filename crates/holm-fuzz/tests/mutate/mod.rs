//! Mutations of samples, the same for the same seed.

/// Numbers at which parsers go wrong, as text.
const NUMBERS: [&str; 9] = [
    "0",
    "-1",
    "255",
    "65536",
    "4294967296",
    "9223372036854775808",
    "18446744073709551616",
    "1e9",
    "٣",
];
/// Bytes at which parsers go wrong.
const BYTES: [u8; 12] = [0, 1, 0x0a, 0x1b, b' ', b'"', b'=', 0x7f, 0x80, 0x9b, 0xc2, 0xff];

/// A source of mutations.
pub struct Mutator {
    state: u64,
}

impl Mutator {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number below `bound` (`SplitMix64`).
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed >> 1).unwrap_or(0) % bound.max(1)
    }

    /// One sample with some changes.
    pub fn mutate(&mut self, samples: &[&[u8]]) -> Vec<u8> {
        let mut input = samples[self.below(samples.len())].to_vec();
        for _ in 0..=self.below(6) {
            self.change(&mut input, samples);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, samples: &[&[u8]]) {
        let at = self.below(input.len() + 1);
        let end = at + self.below((input.len() - at).min(64) + 1);
        match self.below(9) {
            0 | 1 if at < input.len() => input[at] ^= 1 << self.below(8),
            2 if at < input.len() => input[at] = BYTES[self.below(BYTES.len())],
            3 => input.insert(at, BYTES[self.below(BYTES.len())]),
            4 => drop(input.drain(at..end)),
            5 => {
                let copy = input[at..end].to_vec();
                input.splice(at..at, copy);
            }
            6 => input.truncate(at),
            7 => {
                let digits = digits_after(input, at);
                input.splice(digits, NUMBERS[self.below(NUMBERS.len())].bytes());
            }
            _ => {
                // A piece of another sample, in place of one of this.
                let other = samples[self.below(samples.len())];
                let from = self.below(other.len() + 1);
                let to = from + self.below((other.len() - from).min(128) + 1);
                input.splice(at..end, other[from..to].iter().copied());
            }
        }
    }
}

/// The first number at or after a place.
fn digits_after(input: &[u8], at: usize) -> std::ops::Range<usize> {
    let start = input[at..].iter().position(u8::is_ascii_digit).map_or(input.len(), |n| at + n);
    let length = input[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    start..start + length
}
