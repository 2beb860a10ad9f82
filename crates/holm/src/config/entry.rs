//! Entries of a `guest.toml`: which keys are set, and where.

use std::ops::Range;

/// A key that is set.
#[derive(Debug)]
pub(super) struct Entry {
    /// Dotted name.
    pub key: String,
    /// Bytes of the value, and of each item if it is a list.
    pub span: Range<usize>,
    pub items: Vec<Range<usize>>,
}

impl Entry {
    /// Bytes of an item, or of the whole value.
    pub fn span_of(&self, item: Option<usize>) -> Range<usize> {
        item.and_then(|at| self.items.get(at)).unwrap_or(&self.span).clone()
    }
}
