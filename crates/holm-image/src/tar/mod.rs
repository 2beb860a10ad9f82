//! Reading tar: ustar, GNU and pax, with what they say of holes.
//!
//! The usual crates split extended headers at newlines, which values may hold (access control lists
//! do), and see no holes in pax archives.

mod header;
mod reader;

pub use header::{BLOCK, Header, is_header, more_sparse_pieces};
pub use reader::{Entry, Reader};
