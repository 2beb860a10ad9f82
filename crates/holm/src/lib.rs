#![forbid(unsafe_code)]
//! The engine of Holm: everything that `holm` does, without a terminal or a command line.

pub mod config;
pub mod pool;
pub mod store;
