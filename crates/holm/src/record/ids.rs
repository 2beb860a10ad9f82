use std::ops::Range;

/// How many user ids a guest has: all that a 16-bit id can name.
pub const RANGE: u32 = 1 << 16;

/// How many ranges a guest that runs containers of its own has: a distribution gives its users the
/// ids from 100000 on, 65536 each, which must fit inside.
pub(crate) const NESTED_RANGES: u32 = 4;

/// The numbers by which the host tells a guest's processes, packets and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Ids {
    /// The context id, unique in its root.
    pub context: u32,
    /// The host's user and group id that is 0 inside.
    pub base: u32,
    /// How many ids follow it.
    pub count: u32,
}

impl Ids {
    /// The ids that context id `context` stands for.
    pub fn new(instance: u8, context: u32, nesting: bool) -> Self {
        let base = (u32::from(instance) << 26) + context * RANGE;
        Self { context, base, count: if nesting { NESTED_RANGES * RANGE } else { RANGE } }
    }

    /// The context ids that it takes.
    pub(crate) fn contexts(&self) -> Range<u32> {
        self.context..self.context + self.count / RANGE
    }

    /// The whole range as a line of `/proc/PID/uid_map`.
    pub fn map(&self) -> String {
        format!("0 {} {}\n", self.base, self.count)
    }
}
