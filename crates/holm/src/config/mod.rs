//! `guest.toml`: the whole truth of a guest, its types, units and checks.
//!
//! [`parse`] reads a file, [`edit_text`] changes one and keeps its comments, [`keys`] lists what may stand in it, and
//! [`effective`] tells every value with where it comes from.

mod types;

pub use types::*;
