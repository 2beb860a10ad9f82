#![forbid(unsafe_code)]
//! holm-cli.

fn main() {}
