#![forbid(unsafe_code)]
//! holm-init.

fn main() {}
