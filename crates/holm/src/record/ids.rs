use std::ops::Range;

/// The length of an id range: all that a 16-bit id can name.
pub const RANGE: u32 = 1 << 16;

/// How many such ranges a guest has that runs containers of its own: a distribution gives its users
/// the subordinate ids from 100000 on, 65536 each, which must fit inside.
pub(crate) const NESTED_RANGES: u32 = 4;

/// A guest's context id and id range.
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
    /// The ids that belong to a context id.
    pub fn new(instance: u8, context: u32, nesting: bool) -> Self {
        let base = (u32::from(instance) << 26) + context * RANGE;
        Self { context, base, count: if nesting { NESTED_RANGES * RANGE } else { RANGE } }
    }

    /// The context ids that the range covers.
    pub(crate) fn contexts(&self) -> Range<u32> {
        self.context..self.context + self.count / RANGE
    }

    /// The whole range as a line of `/proc/PID/uid_map`.
    pub fn map(&self) -> String {
        format!("0 {} {}\n", self.base, self.count)
    }
}
