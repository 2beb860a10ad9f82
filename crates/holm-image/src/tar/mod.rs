//! Reading tar archives: ustar, GNU and pax, with holes.
//!
//! The usual crates split extended headers at newlines, which values may contain (access control
//! lists do), and do not know the holes of pax archives.

mod header;
mod reader;

pub use header::{BLOCK, Header, is_header, more_sparse_pieces};
pub use reader::{Entry, Reader};
