#![forbid(unsafe_code)]
//! holm-bench.

fn main() {}
