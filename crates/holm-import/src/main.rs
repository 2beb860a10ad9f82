#![forbid(unsafe_code)]
//! holm-import.

fn main() {}
